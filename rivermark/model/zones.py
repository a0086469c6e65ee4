"""Time zones by their names and offsets, and what a wall clock there shows."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from rivermark.model.time import EPOCH, MICROSECOND

Offset = int | tzinfo
"""Seconds east of UTC, or a zone whose clock changes."""
SECOND: Final = 1_000_000
HOUR: Final = 3600 * SECOND
DAY: Final = 24 * HOUR
FIRST_DAY: Final = EPOCH.toordinal()
DAYS_OF_400_YEARS: Final = 146_097
MOST_SECONDS: Final = 18 * 3600
SHORT: Final = {"Z": 0, "UTC": 0, "UT": 0, "GMT": 0, "EST": -18_000, "MST": -25_200, "HST": -36_000}
OFFSET: Final = r"[+-][0-9]{1,2}(?::?[0-9]{2}){0,2}"
_OFFSET: Final = re.compile(
    r"(?:UTC|UT|GMT)?([+-])(?:([0-9]{1,2})(?::([0-9]{2})(?::([0-9]{2}))?)?|"
    r"([0-9]{2})([0-9]{2})([0-9]{2})?)"
)
MIDNIGHT: Final = EPOCH.replace(tzinfo=None)
_FIRST, _LAST = (
    (wall - MIDNIGHT) // MICROSECOND
    for wall in (datetime(1, 1, 2), datetime(9999, 12, 30))  # noqa: DTZ001
)


def micros_of(
    year: int, month: int, day: int, hour: int, minute: int, second: int, fraction: str
) -> int | None:
    """A wall time in microseconds since 1970 began there; None for a date or time that is none."""
    if hour > 23 or minute > 59 or second > 59:
        return None
    try:
        # Python has no year 0, which is a leap year like 400.
        days = date(year or 400, month, day).toordinal() - FIRST_DAY
    except ValueError:
        return None
    if not year:
        days -= DAYS_OF_400_YEARS
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second
    return seconds * SECOND + int(fraction[:6].ljust(6, "0"))


def offset_seconds(text: str) -> int | None:
    """The seconds east of UTC of a text such as `+05:30`, `-4` or `UTC+0530`; None for others."""
    match = _OFFSET.fullmatch(text)
    if match is None:
        return None
    hours, minutes, seconds = (int(match[n] or match[n + 3] or 0) for n in (2, 3, 4))
    east = (hours * 60 + minutes) * 60 + seconds
    if minutes > 59 or seconds > 59 or east > MOST_SECONDS:
        return None
    return -east if match[1] == "-" else east


@lru_cache(maxsize=1024)
def zone_of(name: str) -> Offset | None:
    """The zone of an offset or a name; None for what is neither."""
    if name.upper() == "Z":
        return 0
    if name in SHORT:
        return SHORT[name]
    if (east := offset_seconds(name)) is not None:
        return east
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None


def instant_of(wall: int, zone: Offset) -> int:
    """The instant (microseconds since 1970, UTC) at which a zone's clock shows a wall time.

    The earlier one of two; a time that the clock skips is moved forward by the length of the gap
    (java.time.ZonedDateTime.ofLocal).
    """
    return wall - (zone if isinstance(zone, int) else _offset(wall, zone)) * SECOND


@lru_cache(maxsize=65_536)
def offset_of_hour(hour: int, zone: Offset) -> int | None:
    """The seconds east of UTC in an hour of a zone's clock, by its number since 1970.

    None where the clock changes in it.
    """
    if isinstance(zone, int):
        return zone
    ends = (hour * HOUR, (hour + 1) * HOUR - 1)
    offsets = {_offset(wall, zone, second) for wall in ends for second in (0, 1)}
    return offsets.pop() if len(offsets) == 1 else None


def _offset(wall: int, zone: tzinfo, second: int = 0) -> int:
    # Before and beyond what Python has, clocks do not change.
    shown = min(max(wall, _FIRST), _LAST) * MICROSECOND + MIDNIGHT
    offset = shown.replace(tzinfo=zone, fold=second).utcoffset()
    return 0 if offset is None else offset // timedelta(seconds=1)
