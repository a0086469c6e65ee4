"""A lake and checkpoints of an earlier version go on under this one."""

from __future__ import annotations

import shutil
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from assets.taxi.streams import EVENT_STREAMS
from assets.taxi.tips import DRIVER_TIPS
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from simulator.taxi.drip import drip
from simulator.taxi.drip_plan import DripPlan
from tests.oracles.rides import TaxiOracle, by_id
from tests.spark.helpers.delta_rows import delta_rows

EARLIER = Path(__file__).parents[2] / "data" / "earlier_lake" / "lake.tar.gz"
FOLDERS = ("taxi/rides", "taxi/fares")
HELD_BACK = 3
WRITTEN_AT = "file:/srv/rivermark/"
NAMES = {
    "taxi/ride_events",
    "taxi/fare_events",
    "taxi/clean_rides",
    "taxi/clean_fares",
    "taxi/rides_with_fares",
    "taxi/long_rides",
    "taxi/driver_tips",
}


@pytest.fixture(scope="module")
def went_on(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Settings, TaxiOracle]:
    """The earlier lake, after this version has taken the files that were held back."""
    home = tmp_path_factory.mktemp("earlier")
    with tarfile.open(EARLIER) as packed:
        packed.extractall(home, filter="data")
    settings = Settings(home=home, shuffle_partitions=2)
    plan = DripPlan(rate=None, clock="training", rides=600, unpaced_span=timedelta(minutes=30))
    drip(home / "dripped", home / "manifest.json", plan)
    for folder in FOLDERS:
        landed = Path(settings.landing_root) / folder
        landed.mkdir(parents=True)
        for file in sorted((home / "dripped" / folder).iterdir())[-HELD_BACK:]:
            shutil.copy2(file, landed)
    streams = [s for s in EVENT_STREAMS if s.name in NAMES]
    run_bounded(spark, settings, Topology(EVENT_STREAMS), streams, run_id="later")
    return settings, TaxiOracle(home / "dripped")


def test_admission_goes_on_behind_the_watermark_of_the_earlier_run(
    went_on: tuple[Settings, TaxiOracle],
) -> None:
    settings, oracle = went_on
    for name, accepted in (("ride_events", oracle.rides), ("fare_events", oracle.fares)):
        admitted = delta_rows(settings.lake().path(f"taxi/{name}"), "ride_id")
        late = delta_rows(settings.lake().path(f"taxi/{name}_late"), "ride_id")

        assert sorted(r.ride_id for r in admitted) == by_id(accepted.admitted)
        assert sorted(r.ride_id for r in late) == by_id(accepted.late)


def test_windows_and_joins_go_on_with_their_state(went_on: tuple[Settings, TaxiOracle]) -> None:
    settings, oracle = went_on
    assert oracle.fares.newest is not None
    final = oracle.fares.newest - timedelta(minutes=1)
    tips = {
        (end, driver): tips for (end, driver), tips in oracle.driver_tips().items() if end <= final
    }
    pairs, _, _ = oracle.partners()

    rows = delta_rows(settings.lake().path(DRIVER_TIPS.name))
    paired = delta_rows(settings.lake().path("taxi/rides_with_fares"), "ride_id")

    assert {(utc(r.window_end), r.driver_id): r.tips for r in rows} == tips
    assert len(rows) == len(tips)
    assert sorted(r.ride_id for r in paired) == sorted(pairs)


def test_timers_of_the_earlier_run_fire(went_on: tuple[Settings, TaxiOracle]) -> None:
    settings, oracle = went_on
    passed = max(r["event_time"] for r in oracle.clean_rides) - timedelta(minutes=1)
    ended = {r["ride_id"] for r in oracle.clean_rides if not r["is_start"]}
    long = {
        ride: due for ride, due in oracle.long_rides().items() if due <= passed or ride in ended
    }

    alerts = delta_rows(settings.lake().path("taxi/long_rides"))

    assert {r.ride_id: utc(r.alert_time) for r in alerts} == long
    assert len(alerts) == len(long) > 0


def utc(at: datetime) -> datetime:
    """An instant as the rows hold it, local and without a zone, in UTC."""
    return at.astimezone(UTC)


def test_a_lake_that_was_moved_names_the_schemas_of_its_state_where_it_lies(
    went_on: tuple[Settings, TaxiOracle],
) -> None:
    settings, _ = went_on
    with tarfile.open(EARLIER) as packed:
        entries = [m.name for m in packed.getmembers() if "/_metadata/v2/" in m.name and m.isfile()]
        before = {
            name: packed.extractfile(name).read().decode()  # type: ignore[union-attr]
            for name in entries
            if not name.rsplit("/", 1)[1].startswith(".")
        }
    assert any(WRITTEN_AT in text for text in before.values())

    for name in before:
        after = (settings.home / name).read_text()
        assert WRITTEN_AT not in after
        assert f"file:{settings.home}/lake/checkpoints/" in after
