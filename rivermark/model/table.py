"""What a table is: a name, an explicit schema, and how its rows lie in time."""

from __future__ import annotations

import re
from dataclasses import InitVar, dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from pyspark.sql.types import DateType, StructType, TimestampType

from rivermark.model.columns import TextOr, schema_of
from rivermark.model.ddl import struct_type
from rivermark.model.errors import DeclarationError

NAME: Final = re.compile(r"[a-z][a-z0-9_]*(/[a-z][a-z0-9_]*)+")
"""A table's or stream's name: a domain, then one or more parts, in lower case."""


def check_name(kind: str, name: str, *, like: str) -> None:
    """Refuse a name that could be no folder of the lake, or lie outside it."""
    if not NAME.fullmatch(name):
        raise DeclarationError(
            f"{kind} name {name!r}: expected like '{like}' (lower case words, at least one '/')"
        )


@dataclass(frozen=True)
class Daily:
    """Days by which a table is closed, checked and recomputed.

    `column` is a timestamp (UTC) or a date of the table; a day holds the rows whose column lies in
    [midnight, next midnight) of `zone`. `start` is the first day that the table can hold. Days are
    ranges of the column and not directories: see
    docs/decisions/0002-a-commit-is-the-unit-of-order.md.
    """

    column: str
    start: date
    zone: str = "UTC"

    def bounds(self, first: date, last: date) -> tuple[datetime, datetime]:
        """Instants (UTC) of the start of `first` and of the end of `last`, both days included."""
        zone = ZoneInfo(self.zone)
        start = datetime.combine(first, time(), zone)
        end = datetime.combine(last + timedelta(days=1), time(), zone)
        return start.astimezone(UTC), end.astimezone(UTC)


def days_between(first: date, last: date) -> list[date]:
    """Every day of a range, both ends included; none where it ends before it begins."""
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A Delta table with a declared schema.

        TIPS = Table(
            name="taxi/tips",
            schema="driver_id long, event_time timestamp, tip decimal(12,2) COMMENT 'USD'",
            description="Tips as they were paid.",
            event_time="event_time",
        )

    `schema` is a StructType or DDL text (rivermark.model.ddl); `Table.of` derives it from a record.
    `event_time` names the timestamp column (UTC) that readers window and order by. `keys` are the
    columns that identify a row. `personal` columns never appear as samples on pages. `retention` is
    how long each version stays readable, where it is not as the platform's setting says.
    `properties` are Delta table properties set at creation, over the platform's own.
    """

    name: str
    schema: TextOr[StructType] = TextOr(struct_type)  # noqa: RUF009  # no default: a descriptor
    description: str
    event_time: str | None = None
    keys: tuple[str, ...] = ()
    days: Daily | None = None
    personal: tuple[str, ...] = ()
    retention: timedelta | None = None
    properties: dict[str, str] = field(default_factory=dict, hash=False)
    promise: InitVar[timedelta | None] = None

    def __post_init__(self, promise: timedelta | None) -> None:
        if promise is not None:
            raise DeclarationError(f"table '{self.name}': `promise` is called `retention` now")
        check_name("table", self.name, like="taxi/hourly_tips")
        types = {f.name: f.dataType for f in self.schema.fields}
        for column in (self.event_time, *self.keys, *self.personal):
            if column is not None and column not in types:
                raise DeclarationError(f"table '{self.name}' has no column '{column}'")
        if self.retention is not None and self.retention < timedelta(seconds=1):
            raise DeclarationError(
                f"table '{self.name}': a retention of {self.retention} keeps nothing"
            )
        if self.event_time and not isinstance(types[self.event_time], TimestampType):
            raise DeclarationError(f"table '{self.name}': '{self.event_time}' is not a timestamp")
        if self.days and not isinstance(types.get(self.days.column), TimestampType | DateType):
            raise DeclarationError(
                f"table '{self.name}': '{self.days.column}' is not a timestamp or date column"
            )

    @classmethod
    def of(
        cls,
        record: type[msgspec.Struct],
        *,
        name: str,
        description: str,
        event_time: str | None = None,
        keys: tuple[str, ...] = (),
        days: Daily | None = None,
        personal: tuple[str, ...] = (),
    ) -> Table:
        """A table of the records that a process function emits: a column for each field.

            Table.of(LongRide, name="taxi/long_rides", description="Rides over two hours.")

        An instant in milliseconds must be a `rivermark.process.Millis`, or it is stored as a
        number; `rivermark.model.columns.schema_of` says how other types are stored.

        Raises:
            DeclarationError: A field's type has no column type.
        """
        return cls(
            name=name,
            schema=schema_of(record),
            description=description,
            event_time=event_time,
            keys=keys,
            days=days,
            personal=personal,
        )
