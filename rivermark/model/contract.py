"""The contract of an event: fields, how their text is read, and rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Literal

from pyspark.sql import Column
from pyspark.sql.types import (
    ArrayType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.model.bounds import check_above_zero, check_not_negative
from rivermark.model.columns import TextOr
from rivermark.model.ddl import data_type
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.field_readers import has_reader, reader_for
from rivermark.model.names import check_keys
from rivermark.model.nearest import did_you_mean
from rivermark.model.reader import ANY, LandingTime, Reader
from rivermark.model.time import EPOCH

FLAGS: Final = "flags"
RESERVED: Final = ("flags", "payload")
UNRESOLVABLE: Final = frozenset(".`*")
"""What the engine takes for a path, a quote or all columns in the name of one."""
MAX_ROW_BYTES: Final = 8 << 20
"""Bytes of a row's text; readers hold it several times over."""
LANDED_AT: Final = "landed_at"
"""The field that stands for the event time of a lookup whose records have no time."""
FIRST_WATERMARK: Final = EPOCH
"""Where Spark's watermarks begin: what is older is late in each window."""
INGEST_BATCH: Final = "_ingest_batch"
"""The column of admitted rows that says in which order they came; within a batch, files keep it."""
META: Final = (
    StructField("_file", StringType(), True),
    StructField("_row", LongType(), True),
    StructField(INGEST_BATCH, LongType(), True),
    StructField("_ingested_at", TimestampType(), True),
)
"""Where a row came from: split (file) and place in it (line, from 1), the planned batch, and when
it was read (UTC)."""


@declared("field")
@dataclass(frozen=True)
class Field:
    """One typed column of an event and the names under which sources spell it.

    `type` is a Spark type or DDL text such as `decimal(12,2)`. `names` are looked up after `name`
    itself, separately in each record: first as they are declared, then in any letter case. A row
    whose required field is missing or empty is quarantined, and so is one with a text that cannot
    be read as `type`: no value silently becomes null. A text field holds exactly what the source
    wrote, including numbers, lists and objects in JSON. `read` replaces the reader chosen by type
    (rivermark.model.field_readers). `nulls` are words that mean "no value", in addition to the
    empty text; 'NA' is a text unless it is named here.
    """

    name: str
    type: TextOr[DataType] = TextOr(data_type)  # noqa: RUF009  # no default: a descriptor
    names: tuple[str, ...] = ()
    required: bool = False
    read: Reader | None = None
    nulls: tuple[str, ...] = ()
    description: str = ""

    @property
    def reader(self) -> Reader:
        """The reader of the field's texts.

        Raises:
            DeclarationError: the field's type has no reader, or `read` is one of another type.
        """
        if self.read is None and not has_reader(self.type):
            kind = self.type.simpleString()
            raise DeclarationError(
                f"field '{self.name}': there is no reader for {kind}; give one by `read`"
            )
        reader = self.read or reader_for(self.type)
        fitted = reader.fitted(self.type)
        if fitted is None:
            reads = "single values" if reader.type == ANY else reader.type.simpleString()
            raise DeclarationError(
                f"field '{self.name}' is {self.type.simpleString()}, and its reader reads {reads}"
            )
        return fitted


@declared("rule")
@dataclass(frozen=True)
class Rule:
    """A named statement about a row that can be broken.

    `broken` is a SQL condition over the typed fields of the row, `_file` and the other columns that
    tell where it came from, such as `dropoff_at - pickup_at > INTERVAL 2 HOURS`. If it is null, the
    rule is not broken. Times are UTC, a division by zero is null (docs/concepts/values.md). If SQL
    cannot express the condition, use a function that returns a Spark column, at the cost of a Spark
    job per batch. The action `quarantine` quarantines the row under the rule's name; `flag` admits
    it with the name in its `flags`, and readers decide what to do with it.
    """

    name: str
    broken: str | Callable[[], Column]
    action: Literal["quarantine", "flag"]
    description: str


LANDING_TIME: Final = LandingTime(TimestampType())


@declared("contract")
@dataclass(frozen=True, kw_only=True)
class Contract:
    """The shape of an admitted event.

    `event_time` names a required timestamp field (UTC). A lookup whose records have no time leaves
    it out: a field `landed_at` is then added, and the row that landed last is the newest. A row
    whose event time is before `earliest` (UTC) is quarantined as `event_time_too_early`, and one
    more than `max_ahead` after the moment at which its file landed as `event_time_ahead`. Neither
    moves the watermark. The default refuses times before 1970, where Spark's watermarks begin;
    declare the year in which the source began to catch times in a wrong unit. Only a contract of
    dumps (`lateness=None`) may begin earlier. `max_jump`, if set, also bounds how far one file may
    run ahead of the event time seen so far; a jump is accepted once the next file agrees (a real
    gap). A row whose text is longer than `max_row_bytes` is quarantined as `row_too_large`, and
    nothing in it is read.
    """

    fields: tuple[Field, ...]
    event_time: str = LANDED_AT
    keys: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    earliest: datetime = FIRST_WATERMARK
    max_ahead: timedelta = timedelta(hours=1)
    max_jump: timedelta | None = None
    max_row_bytes: int = MAX_ROW_BYTES

    def __post_init__(self) -> None:
        if self.event_time == LANDED_AT and all(f.name != LANDED_AT for f in self.fields):
            landed = Field(LANDED_AT, TimestampType(), required=True, read=LANDING_TIME)
            object.__setattr__(self, "fields", (*self.fields, landed))
        names = [f.name for f in self.fields]
        if len({n.lower() for n in names}) != len(names):
            raise DeclarationError(
                f"two fields have one name in {names}, whatever the letter case; rename one of them"
            )
        for f in self.fields:
            if f.name.lower() in RESERVED or f.name.startswith("_"):
                raise DeclarationError(
                    f"field '{f.name}': the platform has a column of that "
                    "name; give the field another name, and this one in "
                    "`names`"
                )
            if not f.name or UNRESOLVABLE & set(f.name):
                raise DeclarationError(
                    f"field '{f.name}': no column in Spark can have that name; give the field "
                    "another name, and this one in `names`"
                )
            f.reader  # noqa: B018 - refuses what cannot be read
        if not self.fields:
            raise DeclarationError(
                "this contract has no `fields`: name at least its event time, as in "
                "Field('at', 'timestamp', required=True)"
            )
        by_name = {f.name: f for f in self.fields}
        self._check_event_time(by_name)
        if not 0 < self.max_row_bytes <= 2 * MAX_ROW_BYTES:
            raise DeclarationError(
                f"max_row_bytes is {self.max_row_bytes}; give a number between 1 and "
                f"{2 * MAX_ROW_BYTES}"
            )
        check_not_negative("contract", max_ahead=self.max_ahead)
        check_above_zero("contract", max_jump=self.max_jump)
        if self.earliest.tzinfo is None:
            raise DeclarationError(
                f"earliest {self.earliest} has no time zone; write datetime(..., tzinfo=UTC)"
            )
        if self.earliest > datetime.now(UTC):
            raise DeclarationError(
                f"earliest {self.earliest} is to come: every row before it would be quarantined"
            )
        check_keys("contract", self.keys)
        for key in self.keys:
            if key not in by_name:
                raise DeclarationError(
                    f"key '{key}' must be a required field, but there is none of that "
                    f"name{did_you_mean(key, by_name) or ';'} there are {', '.join(by_name)}"
                )
            if not by_name[key].required:
                raise DeclarationError(
                    f"key '{key}' must be a required field: a row without it is quarantined; write "
                    "required=True in its Field"
                )
        rules = [r.name for r in self.rules]
        if "" in rules:
            raise DeclarationError("a rule needs a name: rows are quarantined or flagged under it")
        if len(set(rules)) != len(rules):
            raise DeclarationError(f"two rules have one name in {rules}; rename one of them")

    def _check_event_time(self, fields: Mapping[str, Field]) -> None:
        """Refuse an event time that is no field, or may be missing."""
        time = fields.get(self.event_time)
        if time is not None and isinstance(time.type, TimestampType) and not time.required:
            raise DeclarationError(
                f"event time '{self.event_time}' must be a required timestamp field: write "
                "required=True in its Field"
            )
        if time is None or not isinstance(time.type, TimestampType):
            times = [f.name for f in self.fields if isinstance(f.type, TimestampType)]
            known = (
                f"its timestamp fields are {', '.join(times)}"
                if times
                else f"none of its fields is a timestamp: {', '.join(fields)}"
            )
            near = "" if time else did_you_mean(self.event_time, times)
            raise DeclarationError(
                f"event time '{self.event_time}' must be a required timestamp field{near or ';'} "
                f"{known}"
            )

    @property
    def by_landing(self) -> bool:
        """True if the records have no time of their own, and that of their landing counts."""
        return any(
            f.name == self.event_time and isinstance(f.read, LandingTime) for f in self.fields
        )

    def columns(self) -> StructType:
        """The fields as columns, all nullable."""
        return StructType([StructField(f.name, f.type, True) for f in self.fields])

    def spellings(self) -> set[str]:
        """Every name under which a source may spell a field, in lower case."""
        return {name.lower() for f in self.fields for name in (f.name, *f.names)}

    def admitted_schema(self) -> StructType:
        """Schema of the admitted table: the fields, the flags, and where the row came from."""
        flags = StructField(FLAGS, ArrayType(StringType()), True)
        return StructType([*self.columns(), flags, *META])

    def late_schema(self) -> StructType:
        """Schema of the late table: as admitted, with the watermark that the row missed."""
        return StructType(
            [
                *self.admitted_schema().fields,
                StructField("_watermark", TimestampType(), True),
                StructField("_late_by_ms", LongType(), True),
            ]
        )


RAW_SCHEMA: Final = StructType(
    [
        *META,
        StructField("_landed_at", TimestampType(), True),
        StructField("_arrival", IntegerType(), True),
        StructField("_format", StringType(), True),
        StructField("_columns", StringType(), True),
        StructField("payload", StringType(), True),
    ]
)
"""What came, untouched: the line (or a record as JSON), and the columns of its split."""

QUARANTINE_SCHEMA: Final = StructType(
    [
        *META,
        StructField("reasons", ArrayType(StringType()), True),
        StructField("details", StringType(), True),
        StructField("event_time", TimestampType(), True),
        StructField("payload", StringType(), True),
    ]
)
"""What was quarantined: one row an event, or one row without `_row` for a whole split."""
REPLACED: Final = "file_replaced"
"""The reason of rows of a former reading, whose file was read again since: they are kept in the
quarantine and counted nowhere."""
