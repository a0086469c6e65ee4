"""A moment has one day, by its bounds, by its local date and in SQL, in every zone and year.

`RIVERMARK_ALL_ZONES=1` tries every zone that there is, and not only those that are odd.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo, available_timezones

import pyarrow as pa
import pytest

from rivermark.lake.duckdb_days import duckdb_day
from rivermark.lake.sql import connection
from rivermark.model.table import Daily, day_start, repeated_hours
from tests.oracles.zones import ODD, day_by_bounds, odd_moments

ZONES = (
    sorted(available_timezones() - {"localtime"}) if os.environ.get("RIVERMARK_ALL_ZONES") else ODD
)
FIRST, LAST = 1901, 2037
DAY = timedelta(days=1)


@pytest.mark.parametrize(
    "zone",
    [pytest.param(z, marks=() if z in ODD[::4] else pytest.mark.long) for z in ZONES],
)
def test_n075_bounds_dates_and_sql_have_one_day_for_a_moment(zone: str) -> None:
    daily = Daily(column="at", start=date(FIRST, 1, 1), zone=zone)
    moments = odd_moments(zone, FIRST, LAST)
    expected = [daily.day_of(at) for at in moments]

    near = {day + n * DAY for day in expected for n in (-1, 0, 1)}
    bounds = {day: daily.bounds(day, day) for day in sorted(near)}
    for at, day in zip(moments, expected, strict=True):
        around = {d: bounds[d] for d in (day - DAY, day, day + DAY)}
        assert day_by_bounds(around, at) == [day], at
    with connection({}) as duck:
        duck.register("moments", pa.table({"at": pa.array(moments, pa.timestamp("us", "UTC"))}))
        sql = f"SELECT {duckdb_day('moments.at', zone)} FROM moments ORDER BY moments.at"  # noqa: S608
        in_sql = [day for (day,) in duck.execute(sql).fetchall()]
    assert in_sql == expected


@pytest.mark.parametrize("zone", ODD)
def test_a_day_begins_where_the_one_before_it_ends_and_shows_its_date(zone: str) -> None:
    local = ZoneInfo(zone)
    for at in odd_moments(zone, FIRST, LAST)[::7]:
        day = at.astimezone(local).date()
        start, end = day_start(zone, day), day_start(zone, day + DAY)
        assert start <= end
        if start < end:
            assert start.astimezone(local).date() == day


def test_n075_an_hour_that_is_repeated_over_midnight_belongs_to_the_day_that_has_begun() -> None:
    """29 October 2006 in Newfoundland: at 00:01 it was 23:01 of the day before again."""
    daily = Daily(column="at", start=date(2006, 1, 1), zone="America/St_Johns")
    again = datetime(2006, 10, 29, 2, 45, tzinfo=UTC)

    assert again.astimezone(ZoneInfo(daily.zone)).date() == date(2006, 10, 28)
    assert daily.day_of(again) == date(2006, 10, 29)
    assert repeated_hours("America/New_York") == repeated_hours("UTC") == ()
    assert duckdb_day("at", "UTC") == "CAST(timezone('UTC', at) AS DATE)"


def test_a_day_that_was_passed_over_is_empty() -> None:
    apia = Daily(column="at", start=date(2011, 1, 1), zone="Pacific/Apia")
    start, end = apia.bounds(date(2011, 12, 30), date(2011, 12, 30))
    assert start == end == apia.bounds(date(2011, 12, 31), date(2011, 12, 31))[0]
