"""Readings from landed files into tables, against the oracle."""

from __future__ import annotations

import shutil
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from assets.readings.averages import AVERAGES_5S
from assets.readings.extremes import MINUTE_EXTREMES
from assets.readings.gaps import GAPS
from assets.readings.hourly import HOURLY
from assets.readings.ingest import SENSOR_READINGS, TEMPERATURES
from assets.samples import SAMPLES
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.suites import suites_of
from simulator.feeds import drip_feeds
from simulator.readings.feeds import sensor_feeds
from simulator.readings.world import SensorWorld
from tests.oracles.readings import SensorOracle, celsius, gaps, hourly
from tests.spark.assets.readings.platform import Platform, utc
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.meets_suite import assert_meets
from tests.spark.helpers.recomputing import recompute_days

pytestmark = pytest.mark.long

# Ten minutes around midnight.
BEGINNING = datetime(2024, 2, 29, 23, 55, tzinfo=UTC)
LENGTH = timedelta(minutes=10)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)

AMBIENT = "ambient_temperature_system_failure"
MACHINE = "machine_temperature_system_failure"
STREAMS = (SENSOR_READINGS, AVERAGES_5S, MINUTE_EXTREMES, TEMPERATURES, HOURLY, GAPS)


def land(landing: Landing) -> None:
    for name in (AMBIENT, MACHINE):
        target = landing.root / "readings/temperatures" / f"{name}.csv.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SAMPLES / "nab" / target.name, target)
        landing.stamp(target)
    drip_feeds(landing.root, sensor_feeds(SensorWorld(), BEGINNING, LENGTH), every=MINUTE)


@pytest.fixture(scope="module")
def platform(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Platform:
    return Platform.drained(spark, tmp_path_factory.mktemp("readings"), STREAMS, land)


@pytest.fixture(scope="module")
def sensors(platform: Platform) -> SensorOracle:
    return SensorOracle(platform.landing)


def test_averages_of_the_generated_sensors_equal_the_oracle(
    platform: Platform, sensors: SensorOracle
) -> None:
    final = final_time(sensors)
    expected = {
        key: (celsius(values), len(values))
        for key, values in sensors.windows(timedelta(seconds=5)).items()
        if key[1] <= final
    }

    rows = platform.delta_rows("readings/averages_5s")

    assert {(r.sensor_id, utc(r.window_end)): (r.celsius, r.readings) for r in rows} == expected
    assert len(rows) == len(expected)
    assert sensors.accepted.late
    assert len(platform.delta_rows("readings/sensor_readings_late")) == len(sensors.accepted.late)


def test_minute_extremes_of_the_generated_sensors_equal_the_oracle(
    platform: Platform, sensors: SensorOracle
) -> None:
    final = final_time(sensors)
    expected = {
        key: (min(values), max(values))
        for key, values in sensors.windows(MINUTE).items()
        if key[1] <= final
    }

    rows = platform.delta_rows("readings/minute_extremes")

    assert {(r.sensor_id, utc(r.window_end)): (r.minimum, r.maximum) for r in rows} == expected


@pytest.mark.parametrize("name", [AMBIENT, MACHINE])
def test_recorded_series_are_resampled_as_the_oracle_does(platform: Platform, name: str) -> None:
    found = {
        utc(r.window_start): (r.readings, r.average, r.minimum, r.maximum)
        for r in platform.delta_rows("readings/hourly")
        if r.sensor_id == name
    }

    assert found == hourly(SAMPLES / "nab" / f"{name}.csv.gz")


def test_an_hour_that_a_logger_passed_twice_holds_both_passes(platform: Platform) -> None:
    [hour] = [
        r
        for r in platform.delta_rows("readings/hourly")
        if r.sensor_id == MACHINE and utc(r.window_start) == datetime(2014, 1, 7, 2, tzinfo=UTC)
    ]

    assert (hour.readings, f"{hour.average:.2f}") == (24, "93.94")
    files = platform.rows("readings/temperatures", "_file")
    assert sum(MACHINE in file for (file,) in files) == 22_695


def test_every_gap_of_the_recorded_series_is_shown(platform: Platform) -> None:
    rows = platform.delta_rows("readings/gaps")
    found = sorted((utc(r.last_before), utc(r.first_after), r.missing) for r in rows)

    assert found == gaps(SAMPLES / "nab" / f"{AMBIENT}.csv.gz", HOUR)
    assert (len(found), sum(missing for _, _, missing in found)) == (10, 621)


@pytest.mark.parametrize(
    ("stream", "day"),
    [(AVERAGES_5S, date(2024, 2, 29)), (HOURLY, date(2014, 1, 7))],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_a_recomputed_day_has_the_same_rows(platform: Platform, stream: Any, day: date) -> None:
    [table] = stream.tables
    before = platform.rows(table.name, *table.schema.names)

    recompute_days(platform.spark, platform.settings, stream, day)

    assert platform.rows(table.name, *table.schema.names) == before


@pytest.mark.parametrize(
    ("table", "suite"),
    [pair for stream in STREAMS for pair in suites_of(stream)],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_table_meets_its_suite(platform: Platform, table: Table, suite: Suite) -> None:
    assert_meets(platform.settings.lake(), table, suite)


def final_time(sensors: SensorOracle) -> datetime:
    assert sensors.accepted.newest is not None
    return sensors.accepted.newest - timedelta(seconds=5)
