"""Moments at which days of a zone are easily mistaken: around every change of its clocks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

SECOND = timedelta(seconds=1)
ODD = (
    # Put back from 00:01 to 23:01, until 2006 to 2011.
    "America/Goose_Bay",
    "America/St_Johns",
    "America/Moncton",
    "Antarctica/Casey",
    # Changed at midnight, or by half an hour, or passed over a day.
    "Africa/Cairo",
    "America/Asuncion",
    "America/Havana",
    "America/New_York",
    "America/Nuuk",
    "America/Santiago",
    "America/Sao_Paulo",
    "Asia/Amman",
    "Asia/Beirut",
    "Asia/Tehran",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Pacific/Apia",
    "Pacific/Kwajalein",
)


def changes(zone: str, first: int, last: int) -> Iterator[datetime]:
    """The instants (UTC) at which a zone's offset changes, in these years."""
    local = ZoneInfo(zone)

    def offset(at: datetime) -> timedelta | None:
        return at.astimezone(local).utcoffset()

    at, end = datetime(first, 1, 1, tzinfo=UTC), datetime(last + 1, 1, 1, tzinfo=UTC)
    while at < end:
        after = at + timedelta(days=1)
        if offset(at) != offset(after):
            before, changed = at, after
            while changed - before > SECOND:
                middle = before + ((changed - before) // (2 * SECOND)) * SECOND
                before, changed = (
                    (middle, changed) if offset(middle) == offset(at) else (before, middle)
                )
            yield changed
        at = after


def odd_moments(zone: str, first: int, last: int) -> list[datetime]:
    """Moments around every change, and around the midnights beside them, in UTC."""
    local = ZoneInfo(zone)
    moments: set[datetime] = set()
    for change in changes(zone, first, last):
        for minutes in (0, 1, 30, 59, 60, 61, 120):
            around = minutes * timedelta(minutes=1)
            moments |= {change - around, change + around, change - around - SECOND}
        day = change.astimezone(local).date()
        for n in (-1, 0, 1):
            for fold in (0, 1):
                midnight = datetime.combine(day + timedelta(days=n), time(), local)
                at = midnight.replace(fold=fold).astimezone(UTC)
                moments |= {at, at - SECOND}
    return sorted(moments)


def day_by_bounds(bounds: dict[date, tuple[datetime, datetime]], at: datetime) -> list[date]:
    """The days within whose bounds a moment lies."""
    return [day for day, (start, end) in bounds.items() if start <= at < end]
