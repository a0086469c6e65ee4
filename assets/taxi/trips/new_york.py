"""New York's clock: local days of 23, 24 and 25 hours, and hours told apart when they repeat."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

ZONE: Final = "America/New_York"
"""TLC writes wall-clock times of this zone, without offset."""
SPRING, AUTUMN = (3, 4), (10, 11)
"""Months in which clocks were changed in the years of which there are records."""
WALL_TIME: Final = r"^[^ T]+[ T][0-9:.]+$"
"""A time without a zone or an offset behind it."""


def wall_clock(instant: Column) -> Column:
    """What clocks in New York showed at an instant (UTC), as if it were a time of UTC."""
    return F.from_utc_timestamp(instant, ZONE)


def local_day(instant: Column) -> Column:
    """The date in New York at an instant (UTC)."""
    return F.to_date(wall_clock(instant))


def day_start(day: Column) -> Column:
    """The instant (UTC) of midnight in New York at which a date begins."""
    return F.to_utc_timestamp(day.cast("timestamp"), ZONE)


def day_end(day: Column) -> Column:
    """The instant (UTC) at which a date ends in New York."""
    return day_start(F.date_add(day, 1))


def hours_in_day(day: Column) -> Column:
    """How long a date lasts in New York: 24 hours, or 23 and 25 on the days of clock changes."""
    seconds = F.unix_timestamp(day_end(day)) - F.unix_timestamp(day_start(day))
    return (seconds / 3600).cast("int")


def local_hour(instant: Column) -> Column:
    """The local hour of an instant with its offset, like '2014-11-02 01:00-05:00'.

    The offset tells apart the two hours that the autumn clock change calls 01:00.
    """
    offset = (F.unix_timestamp(wall_clock(instant)) - F.unix_timestamp(instant)) / 3600
    hour = F.date_format(wall_clock(instant), "yyyy-MM-dd HH:00")
    return F.concat(hour, F.format_string("%+03d:00", offset.cast("int")))


def clock_of(instant: str) -> str:
    """What clocks in New York showed at an instant (UTC), as SQL of rules."""
    return f"timezone('{ZONE}', {instant})"


def day_of(instant: str) -> str:
    """The date in New York at an instant (UTC), as SQL of rules."""
    return f"CAST({clock_of(instant)} AS DATE)"


def is_ambiguous(instant: str, text: str) -> str:
    """Whether the wall-clock text read as `instant` names a time that the clocks showed twice.

    Records without offset are read as the first pass (rivermark.readers.local_timestamp), so on
    that night an hour's trips may belong to the hour after.
    """
    again = clock_of(f"{instant} + INTERVAL 1 HOUR")
    return _in_months(AUTUMN, instant, f"{_is_wall(text)} AND {again} = {clock_of(instant)}")


def is_skipped(instant: str, text: str) -> str:
    """Whether the wall-clock text read as `instant` names a time that the clocks skipped."""
    wall = f"TRY_CAST(trim({text}, ' ') AS TIMESTAMP)"
    return _in_months(SPRING, instant, f"{_is_wall(text)} AND {wall} <> {clock_of(instant)}")


def _in_months(months: tuple[int, int], instant: str, condition: str) -> str:
    # What a clock showed costs a hundred times as much as a month.
    return f"CASE WHEN month({instant}) IN {months} THEN {condition} ELSE false END"


def _is_wall(text: str) -> str:
    return f"regexp_matches(trim({text}, ' '), '{WALL_TIME}')"
