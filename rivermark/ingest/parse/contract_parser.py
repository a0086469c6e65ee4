"""From raw rows to typed ones, with all that is wrong with each: one function of a batch in Arrow.

It needs no Spark and no session, so it is the same in the driver and on executors, to which it is
sent (pickled). Plain lines are typed many at a time (`typed_read`); each other line is cut into
texts, which the fields' readers read (`cutter`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    StringType,
    StructField,
    StructType,
)

from rivermark.ingest.parse.cast import read_known
from rivermark.ingest.parse.column_values import ColumnValues
from rivermark.ingest.parse.cutter import MALFORMED, Cutter, places_of
from rivermark.ingest.parse.field_column import field_columns
from rivermark.ingest.parse.problems import (
    DETAILS,
    PROBLEMS,
    Mask,
    Reason,
    details_of,
    field_reasons,
    line_reasons,
    mask_of,
    names_of,
    time_reasons,
)
from rivermark.ingest.parse.rules import WHOLE, ContractRules, rule_faults
from rivermark.ingest.parse.text_bytes import lengths_of
from rivermark.ingest.parse.typed_read import Places, Typed, TypedRead
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.dictionary_texts import as_dictionary
from rivermark.model.contract import FLAGS, Contract
from rivermark.model.declared import place_of
from rivermark.model.errors import DeclarationError
from rivermark.model.source import Columns

RECORD: Final = "_record"
"""The column that is true of events: lines that are neither empty nor their file's header."""


class ContractParser:
    """Parses raw rows against one contract."""

    def __init__(self, contract: Contract, delimiter: str) -> None:
        self.contract = contract
        self.fields = field_columns(contract)
        self.cutter = Cutter([f.spelled for f in self.fields], delimiter, contract.max_row_bytes)
        self._typed = TypedRead(self.fields, delimiter, contract.max_row_bytes)
        self._types = arrow_schema(contract.columns())
        self._rules = ContractRules(contract)
        self.all_in_sql = all(isinstance(rule.broken, str) for rule in contract.rules)
        """Whether `parse` asks all rules: those that are Spark columns come after it."""

    @property
    def columns(self) -> StructType:
        """The columns that parsing adds: the fields, and what is said of each row.

        `_whole` is there for rules that are Spark columns: they are asked of such rows.
        """
        names = ArrayType(StringType())
        said: dict[str, DataType] = {
            FLAGS: names,
            PROBLEMS: names,
            DETAILS: StringType(),
            RECORD: BooleanType(),
        }
        if not self.all_in_sql:
            said[WHOLE] = BooleanType()
        fields = (StructField(name, kind) for name, kind in said.items())
        return StructType([*self.contract.columns(), *fields])

    def can_admit(self, columns: Sequence[str]) -> bool:
        """Returns True if a CSV file of these columns has each required field.

        Else all of its rows are quarantined, and what seems to be its header may be one of them.
        """
        names = places_of(columns)
        required = (f for f in self.fields if f.required)
        return all(any(key in names for key in f.spelled.keys) for f in required)

    def parse(self, lines: pa.Table, known: Sequence[Columns] = ()) -> pa.Table:
        """Add the typed fields, `flags`, `_problems`, `_details` and `_record`.

        `lines` has `payload`, `_format`, `_columns`, `_head`, `_landed_at`, `_file`, and what else
        a rule refers to; `known` are the columns that some of them were. Nothing
        is dropped and nothing raises: a row's problems are named in the order malformed, fields,
        time, rules.
        """
        count = lines.num_rows
        payloads, landed = _whole(lines["payload"]), _whole(lines["_landed_at"])
        formats, columns = as_dictionary(lines["_format"]), as_dictionary(lines["_columns"])
        # Bytes are looked at by 32-bit offsets.
        payloads = pc.fill_null(payloads, "").cast(pa.string())
        typed = self._type(payloads, formats, columns, known)
        rest = np.flatnonzero(~typed.good)
        careful = self._careful(
            *(each.take(pa.array(rest)).cast(pa.string()) for each in (payloads, formats, columns))
        )
        values = {
            field.name: _merged(typed.columns[field.name], own, rest)
            for field, own in zip(self.fields, careful.values, strict=True)
        }
        for field in self._types:
            # What has no text is the moment of landing.
            column = values.get(field.name, landed)
            lines = lines.append_column(field, column.cast(field.type))
        spread = [(name, _spread(own, rest, count)) for name, own in careful.reasons]
        times = _whole(lines[self.contract.event_time])
        bounds = time_reasons(self.contract, times, landed)
        plain = pa.repeat("", count - len(rest))
        said = {
            FLAGS: names_of((), count),
            PROBLEMS: names_of((*spread, *bounds), count),
            DETAILS: _merged(plain, careful.details, rest),
            RECORD: pa.array(_records(lines, payloads, rest)),
            WHOLE: pa.array(_spread(careful.whole, rest, count, others=True)),
        }
        for name, column in said.items():
            lines = lines.append_column(name, column)
        ruled = self._rules.added(lines)
        return ruled.drop_columns([WHOLE]) if self.all_in_sql else ruled

    def _type(
        self,
        payloads: pa.Array,
        formats: pa.Array,
        columns: pa.Array,
        known: Sequence[Columns],
    ) -> Typed:
        """Type what is plain, and cast the columns that some rows were."""
        if not known:
            return self._typed.read(payloads, formats, columns)
        return read_known(self._typed, payloads, formats, columns, known)

    def _careful(self, payloads: pa.Array, formats: pa.Array, columns: pa.Array) -> _Careful:
        """Read the texts of lines that are not plain, and say what is wrong with them."""
        if not len(payloads):
            nothing = [pa.nulls(0, field.values.type) for field in self.fields]
            return _Careful(nothing, (), np.empty(0, np.bool_), pa.nulls(0, pa.string()))
        cells = self.cutter.cut(payloads, formats, columns)
        values = [field.values.read(cells.field(field.name)) for field in self.fields]
        malformed = cells.field(MALFORMED)
        reasons = (*line_reasons(payloads, malformed), *field_reasons(self.fields, cells, values))
        return _Careful(
            values,
            [(name, mask) for name, mask in reasons if mask.any()],
            mask_of(malformed.is_null()),
            details_of(self.fields, payloads, cells, values),
        )


@dataclass(frozen=True)
class _Careful:
    """Values of lines by the careful parser, and their faults; `whole` is true of records."""

    values: Sequence[pa.Array]
    reasons: Sequence[Reason]
    whole: Mask
    details: pa.Array


def contract_faults(stream: str, contract: Contract) -> Iterator[DeclarationError]:
    """Faults of each reader and each rule that is SQL; nothing where they are right."""
    for field in contract.fields:
        try:
            ColumnValues(field.reader)
        except DeclarationError as error:
            fault = f"stream '{stream}': field '{field.name}': {error}"
            yield DeclarationError(fault).at(place_of(field))
    yield from rule_faults(stream, contract)


def _merged(typed: pa.Array, others: pa.Array, rest: Places) -> pa.Array:
    """The values of typed rows, and between them those of the rows that were asked for."""
    if not len(others):
        return typed
    if not len(typed):
        return others
    places = np.empty(len(typed) + len(others), np.int64)
    is_rest = np.zeros(len(places), np.bool_)
    is_rest[rest] = True
    places[~is_rest] = np.arange(len(typed))
    places[rest] = len(typed) + np.arange(len(others))
    return pa.concat_arrays([typed, others.cast(typed.type)]).take(pa.array(places))


def _spread(own: Mask, rest: Places, count: int, *, others: bool = False) -> Mask:
    """A mask of the rows that were asked for as one of all rows."""
    mask: Mask = np.full(count, others)
    mask[rest] = own
    return mask


def _records(lines: pa.Table, payloads: pa.Array, rest: Places) -> Mask:
    """Mask of the lines that are events. Some of the others are blank, or begin with a mark."""
    heads = as_dictionary(lines["_head"])
    record: Mask = np.ones(len(payloads), np.bool_)
    if len(heads.dictionary):
        # Few lines are as long as the header of their file.
        long = np.append(lengths_of(heads.dictionary), -1)
        codes = pc.fill_null(heads.indices, -1).to_numpy()
        alike = np.flatnonzero(lengths_of(payloads) == long[codes])
        own = pa.array(alike)
        record[alike] = ~mask_of(pc.equal(payloads.take(own), heads.take(own).cast(pa.string())))
    if len(rest):
        own = pa.array(rest)
        bare = pc.replace_substring_regex(payloads.take(own), "^\ufeff", "")
        is_head = mask_of(pc.equal(bare, heads.take(own).cast(pa.string())))
        record[rest] = mask_of(pc.not_equal(pc.utf8_trim(bare, " "), "")) & ~is_head
    return record


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """A column as one array; it may be empty."""
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
