"""The dripped world through door, cleansing, join and tips into tables, against the oracle.

Its short form is a smaller one that goes on in an earlier lake: tests/spark/runtime.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from assets.taxi.cleansing import CLEAN_FARES, CLEAN_RIDES
from assets.taxi.enrichment import RIDES_WITH_FARES, WAITING
from assets.taxi.ingest import RIDE_EVENTS
from assets.taxi.long_rides import LIMIT, LONG_RIDES
from assets.taxi.longest_rides import LONGEST_RIDES
from assets.taxi.streams import EVENT_STREAMS
from assets.taxi.tips import DRIVER_TIPS, HOURLY_WINNERS
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.quality.suites import suites_of
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from simulator.taxi.drip import drip
from simulator.taxi.drip_plan import DripPlan
from tests.oracles.rides import TaxiOracle, by_id
from tests.spark.helpers.delta_rows import delta_rows
from tests.spark.helpers.meets_suite import assert_meets
from tests.spark.helpers.recomputing import recompute_days

pytestmark = pytest.mark.long

# A ride every 20 seconds from noon: the last start at 02:26 of the day after.
RIDES = 2_600
FIRST_DAY = date(2020, 1, 1)
STREAMS = [s for s in EVENT_STREAMS if not s.name.startswith(("taxi/trip", "taxi/zone"))]


@dataclass
class Platform:
    """The platform after a bounded run over everything that landed."""

    spark: SparkSession
    settings: Settings
    oracle: TaxiOracle
    summaries: dict[str, StreamSummary]

    @property
    def landing(self) -> Path:
        return Path(self.settings.landing_root)

    def delta_rows(self, name: str, *columns: str) -> list[Row]:
        return delta_rows(self.settings.lake().path(name), *columns)

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(r) for r in self.delta_rows(name, *columns)), key=repr)

    def ids(self, name: str) -> list[int]:
        return [i for (i,) in sorted(self.rows(name, "ride_id"))]


@pytest.fixture(scope="module")
def platform(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Platform:
    home = tmp_path_factory.mktemp("taxi")
    settings = Settings(home=home, landing_root=str(home / "landing"))
    plan = DripPlan(rate=None, clock="training", rides=RIDES, unpaced_span=timedelta(minutes=30))
    drip(home / "landing", home / "manifest.json", plan)
    summaries = run_bounded(spark, settings, Topology(EVENT_STREAMS), STREAMS, run_id="run")
    return Platform(spark, settings, TaxiOracle(home / "landing"), summaries)


def test_every_ride_event_inside_the_city_is_there_once_with_its_cells(platform: Platform) -> None:
    columns = ("ride_id", "is_start", "start_cell", "end_cell")

    assert platform.rows("taxi/clean_rides", *columns) == sorted(platform.oracle.cells(), key=repr)
    assert platform.ids("taxi/rides_outside_city") == by_id(platform.oracle.rides_outside)


def test_every_fare_is_there_once(platform: Platform) -> None:
    assert platform.ids("taxi/clean_fares") == by_id(platform.oracle.clean_fares)


def test_late_events_are_kept_apart(platform: Platform) -> None:
    assert platform.oracle.rides.late
    assert platform.ids("taxi/ride_events_late") == by_id(platform.oracle.rides.late)
    assert platform.ids("taxi/fare_events_late") == by_id(platform.oracle.fares.late)


def test_tips_and_winners_of_final_hours_equal_the_oracle(platform: Platform) -> None:
    newest = platform.oracle.fares.newest
    assert newest is not None
    final = newest - timedelta(minutes=1)
    tips = {
        (end, driver): tips
        for (end, driver), tips in platform.oracle.driver_tips().items()
        if end <= final
    }
    winners = {e: w for e, w in platform.oracle.winners().items() if e <= final}

    found = platform.delta_rows("taxi/driver_tips")
    best = platform.delta_rows("taxi/hourly_winners")

    assert {(utc(r.window_end), r.driver_id): r.tips for r in found} == tips
    assert len(found) == len(tips)
    assert {utc(r.window_end): (r.driver_id, r.tips) for r in best} == winners
    assert len(best) == 14


def test_the_longest_rides_of_each_cell_and_day_equal_the_oracle(platform: Platform) -> None:
    final = max(r["event_time"] for r in platform.oracle.clean_rides) - timedelta(minutes=1)

    rows = platform.rows("taxi/longest_rides", "event_time", "start_cell", "minutes")

    found = sorted((utc(at), cell, minutes) for at, cell, minutes in rows)
    assert found == platform.oracle.longest_rides(final) != []


def test_each_ride_and_fare_is_paired_alone_or_waiting(platform: Platform) -> None:
    oracle = platform.oracle
    pairs, lone_rides, lone_fares = oracle.partners()
    assert oracle.rides.newest is not None
    assert oracle.fares.newest is not None
    starts = {r["ride_id"]: r["event_time"] for r in oracle.clean_rides if r["is_start"]}
    fares = {f["ride_id"]: f["event_time"] for f in oracle.clean_fares}
    clean_newest = max(r["event_time"] for r in oracle.clean_rides)
    expired = min(clean_newest, max(fares.values())) - timedelta(minutes=1) - WAITING

    assert platform.ids("taxi/rides_with_fares") == sorted(pairs)
    assert platform.ids("taxi/unmatched_rides") == sorted(
        i for i in lone_rides if starts[i] < expired
    )
    assert platform.ids("taxi/unmatched_fares") == sorted(
        i for i in lone_fares if fares[i] < expired
    )
    assert lone_rides
    assert lone_fares


def test_each_long_ride_has_one_alert_as_soon_as_it_is_known(platform: Platform) -> None:
    events = platform.oracle.clean_rides
    starts = {e["ride_id"]: e["event_time"] for e in events if e["is_start"]}
    ends = {e["ride_id"]: e["event_time"] for e in events if not e["is_start"]}
    watermark = max(e["event_time"] for e in events) - timedelta(minutes=1)
    known = {
        ride
        for ride, start in starts.items()
        if (ends[ride] > start + LIMIT if ride in ends else start + LIMIT <= watermark)
    }

    found = platform.delta_rows("taxi/long_rides")

    assert sorted(r.ride_id for r in found) == sorted(known)
    assert known
    assert {utc(r.start_time) for r in found} == {starts[ride] for ride in known}


def test_every_batch_is_noted_with_its_figures(platform: Platform) -> None:
    noted = platform.delta_rows(STREAM_PROGRESS.name)

    for stream in STREAMS:
        batches = [r for r in noted if r.stream == stream.name]
        summary = platform.summaries[stream.name]
        assert sum(r.rows_in for r in batches) == summary.rows_in > 0
        assert sum(r.rows_out for r in batches) == summary.rows_out > 0
        assert len({r.batch_id for r in batches}) == len(batches)
    (rides,) = (r for r in noted if r.stream == RIDE_EVENTS.name)
    accepted = platform.oracle.rides
    expected = (len(accepted.admitted), len(accepted.late), 0)
    assert (rides.admitted, rides.late, rides.quarantined) == expected
    assert rides.files == len([*(platform.landing / "taxi/rides").iterdir()])


@pytest.mark.parametrize(
    "stream",
    [
        *(RIDES_WITH_FARES, LONG_RIDES, DRIVER_TIPS),
        *(CLEAN_RIDES, CLEAN_FARES, LONGEST_RIDES, HOURLY_WINNERS),
    ],
    ids=lambda s: s.name,
)
def test_a_recomputed_day_has_the_same_rows(platform: Platform, stream: Any) -> None:
    before = {t.name: platform.rows(t.name, *t.schema.names) for t in stream.tables}

    recompute_days(platform.spark, platform.settings, stream, FIRST_DAY)

    for table in stream.tables:
        assert platform.rows(table.name, *table.schema.names) == before[table.name], table.name


@pytest.mark.parametrize(
    ("table", "suite"),
    [pair for stream in STREAMS for pair in suites_of(stream)],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_table_meets_its_suite(platform: Platform, table: Table, suite: Suite) -> None:
    assert_meets(platform.settings.lake(), table, suite)


def utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)
