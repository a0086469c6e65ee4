"""Instants as numbers since 1970; days and instants moved only within the years 1 to 9999.

A row may be of the calendar's first or last day, by a value that is no real time. What is computed
around its day stops at the calendar's end then, instead of ending the run.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final, TypeVar
from zoneinfo import ZoneInfo

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
MILLISECOND: Final = timedelta(milliseconds=1)
DAY: Final = timedelta(days=1)
FIRST: Final = datetime.min.replace(tzinfo=UTC)
LAST: Final = datetime.max.replace(tzinfo=UTC)

Moment = TypeVar("Moment", date, datetime)


def micros_of(moment: datetime) -> int:
    """Microseconds since 1970 of an instant."""
    return (moment - EPOCH) // MICROSECOND


def moment_of_micros(micros: int) -> datetime:
    """The instant (UTC) so many microseconds after 1970 began."""
    return EPOCH + timedelta(microseconds=micros)


def millis_of(moment: datetime) -> int:
    """Milliseconds since 1970 of an instant; what is below one is cut."""
    return (moment - EPOCH) // MILLISECOND


def moment_of_millis(millis: int) -> datetime:
    """The instant (UTC) so many milliseconds after 1970 began."""
    return EPOCH + timedelta(milliseconds=millis)


def shifted(moment: Moment, by: timedelta) -> Moment:
    """The moment or day so much later, or the last one there is on that side.

    >>> shifted(date(9999, 12, 31), timedelta(days=1))
    datetime.date(9999, 12, 31)
    """
    try:
        return moment + by
    except OverflowError:
        if isinstance(moment, datetime):
            return (LAST if by > timedelta(0) else FIRST).replace(tzinfo=moment.tzinfo)
        return date.max if by > timedelta(0) else date.min


def in_utc(moment: datetime) -> datetime:
    """An instant in UTC; one that lies before year 1 or after year 9999 there is that end."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        return FIRST if moment.year == 1 else LAST


def local_date(moment: datetime, zone: str) -> date:
    """The date that clocks of a zone show at an instant."""
    try:
        return moment.astimezone(ZoneInfo(zone)).date()
    except OverflowError:
        return date.min if moment.year == 1 else date.max
