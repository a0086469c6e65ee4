"""A table: a name, an explicit schema, and how its rows lie in time."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache, lru_cache
from typing import Final
from zoneinfo import ZoneInfo

import msgspec
from pyspark.sql.types import DataType, DateType, LongType, StructType, TimestampType

from rivermark.model.columns import TextOr, described, schema_of
from rivermark.model.ddl import struct_type
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.names import check_keys, check_name, check_zone
from rivermark.model.nearest import did_you_mean
from rivermark.model.time import DAY, FIRST, LAST, MICROSECOND, in_utc, local_date, shifted

FIRST_OF_SPANS: Final = date(1900, 1, 1)
LAST_OF_SPANS: Final = date(2100, 1, 1)
FOLLOWS_FROM_RETENTION: Final = frozenset(
    {
        "delta.deletedfileretentionduration",
        "delta.logretentionduration",
        "delta.enableexpiredlogcleanup",
    }
)
"""Delta properties that a table has by its retention, in lower case."""


@declared("days", lambda values: values.get("column"))
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

    def __post_init__(self) -> None:
        check_zone(f"days '{self.column}'", self.zone)
        check_first_day(f"days '{self.column}'", self.start)

    def bounds(self, first: date, last: date) -> tuple[datetime, datetime]:
        """Instants (UTC) of the start of `first` and of the end of `last`, both days included."""
        # A day that is the calendar's last one ends with it.
        end = LAST if last == date.max else day_start(self.zone, shifted(last, DAY))
        return day_start(self.zone, first), end

    def day_of(self, moment: datetime) -> date:
        """The day within whose bounds an instant lies.

        That is its local date, but for an hour that is repeated over a midnight: it belongs to the
        day that has begun (see `repeated_hours`).
        """
        day = local_date(moment, self.zone)
        following = shifted(day, DAY)
        return following if moment >= day_start(self.zone, following) else day


def check_first_day(declaration: str, day: date) -> None:
    """Refuse a first day of which no row can be for a year."""
    if day > datetime.now(UTC).date() + timedelta(days=366):
        raise DeclarationError(
            f"{declaration}: the first day {day} is more than a year from now, and no row before "
            "it would have a day; write that of the first rows"
        )


@lru_cache(maxsize=4096)
def day_start(zone: str, day: date) -> datetime:
    """The instant (UTC) at which a day begins: when local clocks first show it, or a later one.

    Clocks that are put back over midnight show midnight twice: the day begins with the first. Those
    that are put forward may not show it at all.
    """
    if day == date.min:
        return FIRST
    midnight = datetime.combine(day, time(), ZoneInfo(zone))
    before, after = in_utc(midnight), in_utc(midnight.replace(fold=1))
    if after >= before:
        return before
    # Skipped: the change lies between what midnight would be by both offsets.
    while before - after > timedelta(seconds=1):
        middle = after + (before - after) // 2
        if middle.astimezone(ZoneInfo(zone)).date() >= day:
            before = middle
        else:
            after = middle
    return before.replace(microsecond=0)


@cache
def repeated_hours(zone: str) -> tuple[tuple[datetime, datetime, date], ...]:
    """Spans of instants (UTC) whose local date is the day before the one that they belong to.

    Clocks were put back from after midnight to before it: 00:01 to 23:01 in Newfoundland until
    2011. With the day that has begun, for SQL, whose local dates fall back too. From 1900 on.
    """
    spans: list[tuple[datetime, datetime, date]] = []
    local = ZoneInfo(zone)

    def midnight(day: date) -> datetime:
        return datetime.combine(day, time(), local)

    for week in range(FIRST_OF_SPANS.toordinal(), LAST_OF_SPANS.toordinal(), 7):
        days = [date.fromordinal(week + n) for n in range(8)]
        if midnight(days[0]).utcoffset() == midnight(days[-1]).utcoffset():
            continue
        for day in days[1:]:
            first = midnight(day).astimezone(UTC)
            again = midnight(day).replace(fold=1).astimezone(UTC)
            if first < again and (again - MICROSECOND).astimezone(local).date() < day:
                spans.append((first, again, day))
    return tuple(spans)


def days_between(first: date, last: date) -> list[date]:
    """Every day of a range, both ends included; none where it ends before it begins."""
    return [first + timedelta(days=n) for n in range((last - first).days + 1)]


@declared("table")
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
    how long each version stays readable, if not as long as the platform's setting says.
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

    def __post_init__(self) -> None:
        check_name("table", self.name, like="taxi/hourly_tips")
        check_keys(f"table '{self.name}'", self.keys)
        types = {f.name: f.dataType for f in self.schema.fields}
        if len({name.lower() for name in self.schema.names}) < len(self.schema.names):
            raise DeclarationError(
                f"table '{self.name}' has two columns with one name, whatever the letter case: "
                f"{', '.join(self.schema.names)}"
            )
        for column in (self.event_time, *self.keys, *self.personal):
            if column is not None and column not in types:
                raise DeclarationError(
                    f"table '{self.name}' has no column '{column}'"
                    f"{did_you_mean(column, types) or ';'} it has {', '.join(types)}"
                )
        if self.retention is not None and self.retention < timedelta(seconds=1):
            raise DeclarationError(
                f"table '{self.name}': a retention of {self.retention} keeps nothing; give a "
                "positive one"
            )
        for name in self.properties:
            if name.lower() in FOLLOWS_FROM_RETENTION:
                raise DeclarationError(
                    f"table '{self.name}': property {name} follows from the retention of its "
                    "versions: declare `retention`, a timedelta"
                )
        if self.event_time and not isinstance(types[self.event_time], TimestampType):
            raise DeclarationError(
                f"table '{self.name}': '{self.event_time}' is not a timestamp"
                f"{_instant(self.event_time, types[self.event_time])}"
            )
        if self.days and not isinstance(types.get(self.days.column), TimestampType | DateType):
            column, own = self.days.column, types.get(self.days.column)
            near = _instant(column, own) if own else did_you_mean(column, types)
            raise DeclarationError(
                f"table '{self.name}': '{self.days.column}' is not a timestamp or date column{near}"
            )

    @classmethod
    def of(
        cls,
        record: type[msgspec.Struct],
        *,
        name: str,
        description: str = "",
        event_time: str | None = None,
        keys: tuple[str, ...] = (),
        days: Daily | None = None,
        personal: tuple[str, ...] = (),
    ) -> Table:
        """A table of the records that a process function emits: a column for each field.

            Table.of(LongRide, name="taxi/long_rides")

        The docstring of the record is the description, unless one is given, and a text beside a
        field's type (`Annotated[int, "How many."]`) that of its column. An instant in milliseconds
        must be a `rivermark.process.Millis`, or it is stored as a number;
        `rivermark.model.columns.schema_of` says how other types are stored.

        Raises:
            DeclarationError: A field's type has no column type.
        """
        return cls(
            name=name,
            schema=schema_of(record),
            description=description or described(record),
            event_time=event_time,
            keys=keys,
            days=days,
            personal=personal,
        )


def _instant(column: str, kind: DataType) -> str:
    """The rest of a sentence on a number that should be an instant."""
    words = f" but a bigint: write `{column}: Millis` in its record, which is "
    words += "rivermark.process.Millis, or timestamp in its schema"
    return words if isinstance(kind, LongType) else ""
