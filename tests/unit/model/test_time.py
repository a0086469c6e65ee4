"""Days at the ends of the calendar are days like others, and nothing is computed beyond them."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from rivermark import Daily
from rivermark.backfill.late.hours import hours_between
from rivermark.lake.day_predicates import moments_predicate, ranges
from rivermark.model.table import days_between
from rivermark.model.time import FIRST, LAST, shifted

ZONES = ["UTC", "America/New_York", "Asia/Tokyo", "Pacific/Kiritimati", "America/St_Johns"]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("moment", [FIRST, LAST, FIRST + timedelta(hours=3)])
def test_r06_r26_a_moment_at_an_end_has_a_day_with_bounds(zone: str, moment: datetime) -> None:
    days = Daily("at", date(1, 1, 1), zone)
    day = days.day_of(moment)
    start, end = days.bounds(day, day)

    assert start <= moment <= end
    assert start < end
    assert day in (date.min, date.max, date(1, 1, 2), date(9999, 12, 30))


def test_r06_what_is_moved_stops_at_the_calendars_end() -> None:
    assert shifted(date.min, -timedelta(days=1)) == date.min
    assert shifted(date.max, timedelta(days=400)) == date.max
    assert shifted(LAST, timedelta(microseconds=1)) == LAST
    assert shifted(FIRST, -timedelta(hours=1)) == FIRST
    assert days_between(date.max, date.max) == [date.max]
    assert ranges([date.max, date.min, date(9999, 12, 30)]) == [
        (date.min, date.min),
        (date(9999, 12, 30), date.max),
    ]
    last = datetime(9999, 12, 31, 22, tzinfo=UTC)
    assert [*hours_between(last, LAST)] == [last, last + timedelta(hours=1)]


def test_r06_years_are_written_with_four_digits() -> None:
    sql = moments_predicate("at", FIRST, LAST)
    assert sql == "(at >= '0001-01-01T00:00:00Z' AND at < '9999-12-31T23:59:59.999999Z')"
