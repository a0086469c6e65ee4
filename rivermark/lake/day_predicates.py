"""Days of a table as conditions on its rows: for Spark, for delta-rs, and for Arrow."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DateType

from rivermark.model.errors import DeclarationError
from rivermark.model.table import Daily, Table, repeated_hours
from rivermark.model.time import shifted

if TYPE_CHECKING:
    from pyarrow import dataset

FEW_RANGES: Final = 8
"""Up to so many ranges of days are compared one by one."""


def ranges(days: Iterable[date]) -> list[tuple[date, date]]:
    """Days joined to ranges without a gap, both ends included."""
    joined: list[tuple[date, date]] = []
    for day in sorted(set(days)):
        if joined and day == shifted(joined[-1][1], timedelta(days=1)):
            joined[-1] = (joined[-1][0], day)
        else:
            joined.append((day, day))
    return joined


def days_of(table: Table) -> Daily:
    """The days of a table that has them."""
    if table.days is None:
        raise DeclarationError(f"table '{table.name}' is not kept by days")
    return table.days


def is_date(table: Table) -> bool:
    """Returns True if the day is a date column, and not a moment."""
    return isinstance(table.schema[days_of(table).column].dataType, DateType)


def predicate(table: Table, days: Iterable[date]) -> str:
    """The rows of those days, as SQL that both Delta's `replaceWhere` and delta-rs read.

    Made of dates and of the declared column's name only: nothing from input or config is in it.
    """
    return " OR ".join(range_predicate(table, first, last) for first, last in ranges(days))


def range_predicate(table: Table, first: date, last: date) -> str:
    """The rows from the day `first` to the day `last`, as SQL."""
    daily = days_of(table)
    if is_date(table):
        return (
            f"({daily.column} >= CAST('{first.isoformat()}' AS DATE) AND "
            f"{daily.column} <= CAST('{last.isoformat()}' AS DATE))"
        )
    return moments_predicate(daily.column, *daily.bounds(first, last))


def moments_predicate(column: str, start: datetime, end: datetime) -> str:
    """The rows whose moment lies in [start, end), two whole seconds of UTC, as SQL.

    `column` is a declared name. Plain texts: both engines read them as the column's type. CAST(...
    AS TIMESTAMP) is one of nanoseconds to delta-rs, which then refuses to compare it with a column
    of microseconds.
    """
    # Not by `strftime`, which writes the year 1 as '1'.
    first, after = (moment.astimezone(UTC).isoformat()[:-6] + "Z" for moment in (start, end))
    return f"({column} >= '{first}' AND {column} < '{after}')"


def in_days(table: Table, days: Iterable[date]) -> dataset.Expression:
    """The rows of those days, as a filter of Arrow."""
    daily = days_of(table)

    def within(first: date, last: date) -> dataset.Expression:
        if not is_date(table):
            return moments_between(daily.column, *daily.bounds(first, last))
        column = pc.field(daily.column)
        return (column >= pa.scalar(first)) & (column <= pa.scalar(last))

    return reduce(or_, (within(first, last) for first, last in ranges(days)))


def moments_between(column: str, start: datetime, end: datetime) -> dataset.Expression:
    """The rows whose moment lies in [start, end), as a filter of Arrow."""
    first, after = (pa.scalar(moment, pa.timestamp("us", "UTC")) for moment in (start, end))
    return (pc.field(column) >= first) & (pc.field(column) < after)


def spark_predicate(table: Table, days: Iterable[date]) -> str:
    """The rows of those days, as SQL for Spark alone.

    Many scattered days are a set to look up in: a range for each of 400 made generated code of more
    than the 64 KB that a method may have. The range around them lets Delta skip files.
    """
    chosen = sorted(set(days))
    if len(ranges(chosen)) <= FEW_RANGES:
        return predicate(table, chosen)
    daily = days_of(table)
    listed = ", ".join(f"DATE'{day.isoformat()}'" for day in chosen)
    day = daily.column if is_date(table) else spark_day(daily.column, daily.zone)
    return f"{range_predicate(table, chosen[0], chosen[-1])} AND {day} IN ({listed})"


def condition(table: Table, days: Iterable[date]) -> Column:
    """The rows of those days, as a Spark column."""
    return F.expr(spark_predicate(table, days))


def day_column(daily: Daily, moment: str) -> Column:
    """The day to which a moment (UTC) belongs, in the zone of the days."""
    return F.expr(spark_day(f"`{moment}`", daily.zone))


def spark_day(column: str, zone: str) -> str:
    """The day of a zone to which an instant belongs, as SQL of Spark."""
    local_date = f"to_date(from_utc_timestamp({column}, '{zone}'))"
    return day_sql(column, zone, local_date, "TIMESTAMP")


def day_sql(
    column: str,
    zone: str,
    local_date: str,
    literal: str,
    others: Iterable[tuple[datetime, datetime, str]] = (),
) -> str:
    """The local date of an instant, but for the hours in which it falls back to the day before.

    `others` are further spans (UTC) with the expression that holds in them; `literal` is the type
    of an instant in the SQL.
    """
    repeated = ((start, end, f"DATE '{day}'") for start, end, day in repeated_hours(zone))
    cases = [
        f"WHEN {column} >= {literal} '{start:%Y-%m-%d %H:%M:%S}+00:00' "
        f"AND {column} < {literal} '{end:%Y-%m-%d %H:%M:%S}+00:00' THEN {day}"
        for start, end, day in (*repeated, *others)
    ]
    return f"CASE {' '.join(cases)} ELSE {local_date} END" if cases else local_date
