"""From raw rows to typed ones: what each payload says, and everything that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import BooleanType, StringType, StructField, StructType

from rivermark.ingest.parse.cutter import (
    MALFORMED,
    NO_KNOWN_COLUMN,
    TOO_LARGE,
    UNDECODABLE,
    UNPARSABLE,
    WRONG_NUMBER,
    Cutter,
    Spelled,
    places_of,
)
from rivermark.ingest.parse.lane.cells import TYPED, VALUES, LaneOrCutter
from rivermark.ingest.parse.lane.lane import Lane
from rivermark.ingest.parse.lane.readers import lane_of, zones_of
from rivermark.ingest.parse.lane.zones import Change, Zone
from rivermark.ingest.parse.projection import PLACE
from rivermark.ingest.parse.rules import PROBLEMS, WHOLE, ContractRules, with_column_rules
from rivermark.ingest.spark_internals import CachedColumns, zone_changes
from rivermark.model.contract import FLAGS, Contract, Field
from rivermark.model.field_readers import reader_for

CELLS: Final = "_cells"
"""The text of each field, as the cutter makes it."""
DETAILS: Final = "_details"

ONE_A_LINE: Final = "the source expects one JSON object a line; "
START: Final = "^\ufeff?\\s*+"
LINES: Final = (
    (
        START + r"(\[|\]\s*$|\{.*\}\s*,\s*$)",
        "this one belongs to an array: write each of its objects on a line of its own, without "
        "brackets and commas around",
    ),
    (START + r"\{.*\}\s*$", "this one is an object that is not well-formed"),
    (
        START + r"(\{|\}|\]|\"[^\"]*\"\s*:)",
        "this one is a part of an object that goes over several: write it on one line",
    ),
    (r"^[^{}\[\]:,;\t]*+[,;\t]", "this one looks like CSV: write format='csv' in its FileSource"),
)
"""What lines that are no object look like, and what to do then. Their cost grows with a line's
length and not with its square: of a million spaces it would be hours."""

DAY: Final = 24 * 3600
UNTIL: Final = 2_145_916_800
"""2038-01-01, in seconds since 1970: up to then the changes of time zones are looked up."""
IMPOSSIBLE: Final = datetime(10, 1, 1, tzinfo=UTC)
"""Event times before it are no times: near year 1 a zone leads out of what Python can hold."""


class Parser:
    """Parses raw rows against one contract: a cutter finds texts, Spark's expressions read them.

    The expressions are built once and used again for every batch: building them takes thousands of
    calls into the JVM, which cost more than parsing a small batch.
    """

    def __init__(self, contract: Contract, delimiter: str) -> None:
        self.contract = contract
        self._delimiter = delimiter
        self._spelled = [spelled(field) for field in contract.fields]
        self.cutter = Cutter(self._spelled, delimiter, contract.max_row_bytes)
        self._rules = ContractRules(contract)
        self._lane: Lane | None = None
        self._zones: dict[str, Zone] = {}
        self._typing: dict[tuple[tuple[str, ...], frozenset[str]], list[CachedColumns]] = {}
        self._cutting: dict[tuple[str, ...], CachedColumns] = {}
        self._alone: CachedColumns | None = None

    def can_admit(self, columns: Sequence[str]) -> bool:
        """Whether a CSV file of these columns has each required field.

        Else all of its rows are quarantined, and what seems to be its header may be one of them.
        """
        names = places_of(columns)
        return all(
            any(key in names for key in own.keys)
            for field, own in zip(self.contract.fields, self._spelled, strict=True)
            if field.required and not is_landing_time(self.contract, field)
        )

    def lane(self, spark: SparkSession) -> Lane:
        """The lane of the contract, with the time zones of this session's JVM."""
        if self._lane is None:
            zones = {name: self.zone(spark, name) for name in zones_of(self.contract)}
            self._lane = lane_of(self.contract, self._spelled, self._delimiter, zones)
        return self._lane

    def zone(self, spark: SparkSession, name: str) -> Zone:
        """A time zone by the tables of this session's JVM, fetched once."""
        if name not in self._zones:
            self._zones[name] = zone_of(spark, name)
        return self._zones[name]

    def parse(self, raw: DataFrame) -> DataFrame:
        """Add the typed fields, `flags`, `_problems` (why a row is quarantined) and `_details`.

        `raw` has `payload`, `_format`, `_columns`, `_landed_at` and `_file`. Nothing is dropped and
        nothing raises: a row's problems are named in the order malformed, fields, time, rules.
        """
        names = tuple(raw.columns)
        lane = self.lane(raw.sparkSession)
        if names not in self._cutting:
            kept = [F.col(name) for name in names]
            self._cutting[names] = CachedColumns([*kept, self._cells(lane).alias(CELLS)])
        typed = self._typed(self._cutting[names].of(raw), names, lane.typed)
        if not self.contract.rules:
            return typed.drop(WHOLE)
        ruled = typed.mapInArrow(self._rules.of_batches, typed.schema)
        return with_column_rules(ruled, self.contract).drop(WHOLE)

    def parse_cut(self, cut: DataFrame, columns: Sequence[str]) -> DataFrame:
        """`_place`, what parsing adds, whether a line is an event (`_record`) and well-formed.

        Rules are not asked, by which rows get flags and more problems.
        `cut` has what `parse` takes, named by `columns`, and the cutter's texts in `_cells`.
        """
        if self._alone is None:
            names = [*(f.name for f in self.contract.fields), FLAGS, PROBLEMS, DETAILS, WHOLE]
            self._alone = CachedColumns(
                [F.col(PLACE), *(F.col(name) for name in names), is_record().alias("_record")]
            )
        return self._alone.of(self._typed(cut, tuple(columns)))

    def _cells(self, lane: Lane) -> Column:
        """The lane, and the cutter for the rows that it leaves, called by Spark's workers."""
        fields = self.contract.fields
        values = [StructField(f.name, f.type) for f in fields if f.name in lane.typed]
        cells = StructType(
            [
                *(StructField(field.name, StringType()) for field in fields),
                StructField(MALFORMED, StringType()),
                StructField(TYPED, BooleanType()),
                StructField(VALUES, StructType(values)),
            ]
        )
        # Called once a row: what is not deterministic is not copied into each expression above it.
        wrap: Any = arrow_udf  # Its stubs know no structs.
        columns: Column = wrap(LaneOrCutter(lane, self.cutter).cells, cells).asNondeterministic()(
            "payload", "_format", "_columns"
        )
        return columns

    def _typed(
        self, cut: DataFrame, names: tuple[str, ...], by_lane: frozenset[str] = frozenset()
    ) -> DataFrame:
        if (names, by_lane) not in self._typing:
            kept = [F.col(name) for name in names]
            fields = self.contract.fields
            values = [value_of(f, by_lane=f.name in by_lane).alias(f.name) for f in fields]
            self._typing[names, by_lane] = [
                CachedColumns([*kept, F.col(CELLS), *values]),
                CachedColumns(
                    [
                        *kept,
                        *(F.col(f.name) for f in fields),
                        named([]).alias(FLAGS),
                        named(problems(self.contract, by_lane)).alias(PROBLEMS),
                        unreadable_details(fields).alias(DETAILS),
                        F.col(CELLS)[MALFORMED].isNull().alias(WHOLE),
                    ]
                ),
            ]
        for step in self._typing[names, by_lane]:
            cut = step.of(cut)
        return cut


def zone_of(spark: SparkSession, name: str) -> Zone:
    """A time zone from 1970 to 2037."""
    offset, changes = zone_changes(spark, name, UNTIL)
    return Zone(DAY, UNTIL - DAY, offset, [Change(*each) for each in changes])


def spelled(field: Field) -> Spelled:
    """How a field's text is found: its own name first, each spelling once."""
    names = tuple(dict.fromkeys((field.name, *field.names)))
    return Spelled(field.name, names, field.nulls)


def is_record() -> Column:
    """Whether a line is an event, and neither empty nor its file's header line (`_head`)."""
    bare = F.regexp_replace("payload", "^\ufeff", "")
    return (F.trim(bare) != "") & ~F.coalesce(bare == F.col("_head"), F.lit(False))


def is_landing_time(contract: Contract, field: Field) -> bool:
    """Whether a field is the moment of landing, which no text says."""
    return contract.by_landing and field.name == contract.event_time


def value_of(field: Field, *, by_lane: bool) -> Column:
    """The field's typed value; null where it is missing or its text cannot be read."""
    read = field.read or reader_for(field.type)
    value = read(F.col(CELLS)[field.name]).try_cast(field.type)
    if not by_lane:
        return value
    return F.when(F.col(CELLS)[TYPED], F.col(CELLS)[VALUES][field.name]).otherwise(value)


def problems(contract: Contract, by_lane: frozenset[str]) -> list[tuple[str, Column]]:
    """Each reason for which a row is quarantined before rules are asked, with its condition."""
    malformed = F.col(CELLS)[MALFORMED]
    reasons = [
        (UNPARSABLE, malformed == UNPARSABLE),
        (WRONG_NUMBER, malformed == WRONG_NUMBER),
        (NO_KNOWN_COLUMN, malformed == NO_KNOWN_COLUMN),
        (TOO_LARGE, malformed == TOO_LARGE),
        (UNDECODABLE, F.contains("payload", F.lit("\ufffd")) | (malformed == UNDECODABLE)),
    ]
    whole = malformed.isNull()
    for f in contract.fields:
        text = F.col(CELLS)[f.name]
        reasons.append((f"unreadable_{f.name}", whole & text.isNotNull() & F.col(f.name).isNull()))
        if f.required and not is_landing_time(contract, f):
            missing = whole & text.isNull()
            if f.name in by_lane:
                missing = missing & ~F.col(CELLS)[TYPED]
            reasons.append((f"missing_{f.name}", missing))
    time = F.col(contract.event_time)
    early = (time < F.lit(contract.earliest)) & (time >= F.lit(IMPOSSIBLE))
    reasons.append(("event_time_impossible", time < F.lit(IMPOSSIBLE)))
    reasons.append(("event_time_too_early", early))
    reasons.append(("event_time_ahead", time > F.col("_landed_at") + F.lit(contract.max_ahead)))
    return reasons


def named(conditions: Iterable[tuple[str, Column]]) -> Column:
    """The names whose condition holds, in order."""
    names = [F.when(condition, F.lit(name)) for name, condition in conditions]
    return F.array_compact(F.array(*names)) if names else F.array().cast("array<string>")


def no_object_details() -> list[Column]:
    """What a line that is no JSON object seems to be; nothing for other lines."""
    unparsable = F.col(CELLS)[MALFORMED] == UNPARSABLE
    seems = F.lit("this line is none")
    for pattern, text in reversed(LINES):
        seems = F.when(F.col("payload").rlike(pattern), F.lit(text)).otherwise(seems)
    return [F.when(unparsable, F.concat(F.lit(ONE_A_LINE), seems))]


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
    return F.concat_ws("; ", *shown, *no_object_details())
