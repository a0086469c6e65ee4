"""Four days stream in late and with an outage; checks report it, merges repair it, streams go on.

The oracle is plain Python over the landed files, and knows every row however late it came.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from assets.taxi.ingest import FARE_EVENTS, RIDE_EVENTS
from assets.taxi.streams import EVENT_STREAMS
from rivermark.backfill.late.days import late_days
from rivermark.monitor.completeness.checks import days_complete
from rivermark.runtime.spark.session import open_session
from rivermark.settings import Settings
from tests.late_world import (
    BEGIN,
    DAY,
    HOUR,
    World,
    assert_fares_equal,
    assert_longest_equal,
    assert_rides_equal,
    late_world,
)
from tests.oracles.rides import TaxiOracle

FIRST, SECOND, THIRD = (date(2020, 1, n) for n in (1, 2, 3))
OUTAGE = (BEGIN + DAY + 9 * HOUR, BEGIN + DAY + 12 * HOUR)
CLOSES_THE_THIRD = BEGIN + 3 * DAY + 8 * HOUR
"""By then the last late row of the third day has come: late rows are held for six hours at most."""
CLOSES_THE_FOURTH = BEGIN + 4 * DAY + 8 * HOUR
ALL = timedelta(days=365)

STREAMS = [s for s in EVENT_STREAMS if not s.name.startswith(("taxi/trip", "taxi/zone"))]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings = Settings(home=tmp_path / "home", trigger_seconds=0.1)
    spark: SparkSession = open_session(settings, kind="long")
    try:
        with late_world(
            spark,
            settings,
            tmp_path / "dripped",
            STREAMS,
            until_moment=CLOSES_THE_FOURTH,
            outage=OUTAGE,
        ) as world:
            yield world
    finally:
        spark.stop()


def assert_days_report_what_is_late(world: World) -> None:
    """Each day warns with its late rows and their money; the day of the silent source fails."""
    oracle = TaxiOracle(world.landing)
    for ingest, rows in ((FARE_EVENTS, oracle.fares), (RIDE_EVENTS, oracle.rides)):
        days = world.days(ingest.name)
        for day in (FIRST, SECOND, THIRD):
            late = sum(r["event_time"].date() == day for r in rows.late)
            admitted = sum(r["event_time"].date() == day for r in rows.admitted)
            report = days[day]
            assert late
            assert (report.late, report.unmerged, report.admitted) == (late, late, admitted)
    of_fares = world.days(FARE_EVENTS.name)
    assert [of_fares[d].state for d in (FIRST, SECOND, THIRD)] == ["warn", "fail", "warn"]
    assert len(of_fares[SECOND].missing_hours) == 3
    money = sum(r["total_fare"] for r in oracle.fares.late if r["event_time"].date() == FIRST)
    assert of_fares[FIRST].late_money == money
    result = days_complete(world.settings, world.topology, RIDE_EVENTS)
    assert not result.passed
    assert result.numbers["rows_unfolded"] == len(oracle.rides.late)


@pytest.mark.story
@pytest.mark.slow
def test_late_rows_are_merged_into_closed_days_while_the_streams_go_on(world: World) -> None:
    # A landing a day and a half: what is late is so by the files before, not by when they land.
    world.land(BEGIN + 2 * DAY)
    world.land(CLOSES_THE_THIRD)
    assert_days_report_what_is_late(world)

    report = world.fold()

    oracle = TaxiOracle(world.landing)
    late = [r["event_time"].date() for r in (*oracle.fares.late, *oracle.rides.late)]
    assert report.rows == sum(day <= THIRD for day in late)
    assert {d.day for d in report.days} == {FIRST, SECOND, THIRD}
    of_rides, of_fares = world.days(RIDE_EVENTS.name), world.days(FARE_EVENTS.name)
    assert [of_rides[d].state for d in (FIRST, SECOND, THIRD)] == ["complete"] * 3
    # What never came cannot be merged: the day of the outage still fails.
    assert [of_fares[d].state for d in (FIRST, SECOND, THIRD)] == ["complete", "fail", "complete"]
    everything = TaxiOracle(world.landing, ALL)
    assert_fares_equal(world, everything, BEGIN + 3 * DAY)
    assert_rides_equal(world, everything, BEGIN + 3 * DAY)
    assert_longest_equal(world, everything, BEGIN + 3 * DAY)

    assert world.live.alive()
    world.land(CLOSES_THE_FOURTH)
    second = world.fold()

    assert {d.day for d in second.days} == {THIRD + DAY}
    everything = TaxiOracle(world.landing, ALL)
    assert_fares_equal(world, everything, BEGIN + 4 * DAY)
    assert_rides_equal(world, everything, BEGIN + 4 * DAY)
    assert_longest_equal(world, everything, BEGIN + 4 * DAY)
    left = [d for i in (FARE_EVENTS, RIDE_EVENTS) for d in late_days(world.settings, i)]
    assert not any(day.closed for day in left)
    world.assert_nothing_dropped()
