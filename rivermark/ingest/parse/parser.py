"""From raw rows to typed ones: what each payload says, and everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StringType, StructField, StructType

from rivermark.ingest.parse.cutter import (
    MALFORMED,
    NO_KNOWN_COLUMN,
    UNDECODABLE,
    UNPARSABLE,
    WRONG_NUMBER,
    Cutter,
    Spelled,
)
from rivermark.ingest.spark_internals import CachedColumns
from rivermark.model.contract import FLAGS, Contract, Field
from rivermark.model.field_readers import reader_for

CELLS: Final = "_cells"
"""The text of each field, as the cutter makes it."""
PROBLEMS: Final = "_problems"
DETAILS: Final = "_details"
PLACE: Final = "_place"
"""Where a line stood among those that were sent to be parsed alone."""

IMPOSSIBLE: Final = datetime(10, 1, 1, tzinfo=UTC)
"""Event times before it are no times: near year 1 a zone leads out of what Python can hold."""


class Parser:
    """Parses raw rows against one contract: a cutter finds texts, Spark's expressions read them.

    The expressions are built once and used again for every batch: building them takes thousands of
    calls into the JVM, which cost more than parsing a small batch.
    """

    def __init__(self, contract: Contract, delimiter: str) -> None:
        self._contract = contract
        self.cutter = Cutter([spelled(field) for field in contract.fields], delimiter)
        self._typing: dict[tuple[str, ...], list[CachedColumns]] = {}
        self._cutting: dict[tuple[str, ...], CachedColumns] = {}
        self._alone: CachedColumns | None = None

    def parse(self, raw: DataFrame) -> DataFrame:
        """Add the typed fields, `flags`, `_problems` (why a row is quarantined) and `_details`.

        `raw` has `payload`, `_format`, `_columns`, `_landed_at` and `_file`. Nothing is dropped and
        nothing raises: a row's problems are named in the order malformed, fields, time, rules.
        """
        names = tuple(raw.columns)
        if names not in self._cutting:
            kept = [F.col(name) for name in names]
            self._cutting[names] = CachedColumns([*kept, self._cells().alias(CELLS)])
        return self._typed(self._cutting[names].of(raw), names)

    def parse_cut(self, cut: DataFrame, columns: Sequence[str]) -> DataFrame:
        """`_place`, the columns that parsing adds, and whether a line is an event (`_record`).

        `cut` has what `parse` takes, named by `columns`, and the cutter's texts in `_cells`.
        """
        if self._alone is None:
            names = [*(f.name for f in self._contract.fields), FLAGS, PROBLEMS, DETAILS]
            self._alone = CachedColumns(
                [F.col(PLACE), *(F.col(name) for name in names), is_record().alias("_record")]
            )
        return self._alone.of(self._typed(cut, tuple(columns)))

    def _cells(self) -> Column:
        """The cutter, called by Spark's workers."""
        names = [*(field.name for field in self._contract.fields), MALFORMED]
        texts = StructType([StructField(name, StringType()) for name in names])
        # Called once a row: what is not deterministic is not copied into each expression above it.
        wrap: Any = arrow_udf  # Its stubs know no structs.
        cells: Column = wrap(self.cutter.cut, texts).asNondeterministic()(
            "payload", "_format", "_columns"
        )
        return cells

    def _typed(self, cut: DataFrame, names: tuple[str, ...]) -> DataFrame:
        if names not in self._typing:
            kept = [F.col(name) for name in names]
            fields = self._contract.fields
            rules = [r for r in self._contract.rules if r.action == "flag"]
            self._typing[names] = [
                CachedColumns([*kept, F.col(CELLS), *(value_of(f).alias(f.name) for f in fields)]),
                CachedColumns(
                    [
                        *kept,
                        *(F.col(f.name) for f in fields),
                        named((r.name, r.broken()) for r in rules).alias(FLAGS),
                        named(problems(self._contract)).alias(PROBLEMS),
                        unreadable_details(fields).alias(DETAILS),
                    ]
                ),
            ]
        for step in self._typing[names]:
            cut = step.of(cut)
        return cut


def spelled(field: Field) -> Spelled:
    """How a field's text is found: its own name first, each spelling once."""
    names = tuple(dict.fromkeys((field.name, *field.names)))
    return Spelled(field.name, names, field.nulls)


def is_record() -> Column:
    """Whether a line is an event, and neither empty nor its file's header line (`_head`)."""
    bare = F.regexp_replace("payload", "^\ufeff", "")
    return (F.trim("payload") != "") & ~F.coalesce(bare == F.col("_head"), F.lit(False))


def value_of(field: Field) -> Column:
    """The field's typed value; null where it is missing or its text cannot be read."""
    read = field.read or reader_for(field.type)
    return read(F.col(CELLS)[field.name]).try_cast(field.type)


def problems(contract: Contract) -> list[tuple[str, Column]]:
    """Each reason for which a row is quarantined, with its condition."""
    malformed = F.col(CELLS)[MALFORMED]
    reasons = [
        (UNPARSABLE, malformed == UNPARSABLE),
        (WRONG_NUMBER, malformed == WRONG_NUMBER),
        (NO_KNOWN_COLUMN, malformed == NO_KNOWN_COLUMN),
        (UNDECODABLE, F.contains("payload", F.lit("\ufffd")) | (malformed == UNDECODABLE)),
    ]
    whole = malformed.isNull()
    for f in contract.fields:
        text = F.col(CELLS)[f.name]
        reasons.append((f"unreadable_{f.name}", whole & text.isNotNull() & F.col(f.name).isNull()))
        if f.required:
            reasons.append((f"missing_{f.name}", whole & text.isNull()))
    time = F.col(contract.event_time)
    early = (time < F.lit(contract.earliest)) & (time >= F.lit(IMPOSSIBLE))
    reasons.append(("event_time_impossible", time < F.lit(IMPOSSIBLE)))
    reasons.append(("event_time_too_early", early))
    reasons.append(("event_time_ahead", time > F.col("_landed_at") + F.lit(contract.max_ahead)))
    reasons += [(r.name, whole & r.broken()) for r in contract.rules if r.action == "quarantine"]
    return reasons


def named(conditions: Iterable[tuple[str, Column]]) -> Column:
    """The names whose condition holds, in order."""
    names = [F.when(condition, F.lit(name)) for name, condition in conditions]
    return F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")


def unreadable_details(fields: Sequence[Field]) -> Column:
    """The texts that could not be read, as 'field=text', for the quarantine table."""
    whole = F.col(CELLS)[MALFORMED].isNull()
    shown = [
        F.when(
            whole & F.col(CELLS)[f.name].isNotNull() & F.col(f.name).isNull(),
            F.concat(F.lit(f"{f.name}="), F.substring(F.col(CELLS)[f.name], 1, 200)),
        )
        for f in fields
    ]
    return F.concat_ws("; ", *shown)
