"""Typed rows as records: their columns for the contract, and a payload to look at and to replay."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as t

from rivermark.ingest.source.payload import TypedRecords
from rivermark.lake.json_columns import json_objects, plain_texts
from rivermark.lake.value_texts import odd_text, utf8_texts
from rivermark.model.json_text import json_text
from rivermark.model.source import Columns

PLAIN: Final = {bool, int, float, str, Decimal, datetime, date}
"""Kinds of values whose columns read as their texts do."""
TEXTS: Final = (
    *(t.is_string, t.is_large_string, t.is_string_view),
    *(t.is_binary, t.is_large_binary, t.is_binary_view, t.is_fixed_size_binary),
)


def in_base64(value: bytes) -> str:
    """Bytes that are no text, where none is wanted."""
    return b64encode(value).decode()


def typed_records(
    batch: pa.RecordBatch, wanted: Collection[str] | None, instants: Collection[str] = ()
) -> TypedRecords:
    """Each row as a record.

    `wanted` are the columns that matter, in lower case, or None for all: what is no text in one of
    them becomes replacement characters, which no row is admitted with, and in any other base64.
    Another column that has no form in JSON is left out. Times of `instants` are in UTC though their
    type does not say so.
    """
    names: list[str] = []
    columns: list[pa.Array] = []
    known: list[tuple[str, pa.Array]] = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        matters = wanted is None or name.lower() in wanted
        try:
            column = _readable(column, matters, name in instants)
        except Exception:
            if matters:
                raise
            continue
        names.append(name)
        columns.append(column)
        if matters:
            known.append((name, column))
    payloads = json_objects(pa.RecordBatch.from_arrays(columns, names))
    if not columns:
        payloads = pa.array(["{}"] * batch.num_rows, pa.string())
    if len({name.lower() for name, _ in known}) < len(known):
        return TypedRecords(payloads)
    rows = pa.RecordBatch.from_arrays([column for _, column in known], [name for name, _ in known])
    return TypedRecords(payloads, (Columns(0, rows),))


def record_columns(
    records: Sequence[Mapping[str, Any]], wanted: Collection[str] | None
) -> tuple[Columns, ...]:
    """The columns that matter of records; none where a text has no UTF-8."""
    every = dict.fromkeys(chain.from_iterable(records))
    names = [name for name in every if wanted is None or name.lower() in wanted]
    if len({name.lower() for name in names}) < len(names):
        return ()
    try:
        columns = [_column([record.get(name) for record in records]) for name in names]
    except UnicodeEncodeError:
        return ()
    return (Columns(0, pa.RecordBatch.from_arrays(columns, names)),)


def _column(values: list[Any]) -> pa.Array:
    """Values of one kind that Arrow has as they are; all others as their texts in JSON."""
    kinds = {*map(type, values)} - {type(None)}
    is_one = len(kinds) < 2 and kinds <= PLAIN
    if is_one and Decimal in kinds:
        is_one = len({v.as_tuple().exponent for v in values if v is not None}) == 1
    if is_one:
        with suppress(pa.ArrowException, OverflowError):
            return pa.array(values)
    return pa.array([None if value is None else _text(value) for value in values], pa.string())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value).decode().strip('"')


def _readable(column: pa.Array, matters: bool, is_instant: bool) -> pa.Array:
    """The column with bytes as texts, and with the zone of its times."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType) and not isinstance(kind, pa.UuidType):
        return _readable(column.storage, matters, is_instant)
    if t.is_dictionary(kind):
        return _readable(column.dictionary_decode(), matters, is_instant)
    if is_instant and t.is_timestamp(kind):
        return column.cast(pa.timestamp(kind.unit, "UTC"))
    if any(is_one(kind) for is_one in TEXTS):
        return utf8_texts(column, odd_text if matters else in_base64)
    if t.is_nested(kind):
        # What JSON cannot hold of it is found out here, where it costs its column alone.
        plain_texts(column.slice(0, 0))
    return column
