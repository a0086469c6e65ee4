"""Readings from landed files into tables, against the oracle."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import Row, SparkSession

from assets.readings.averages import AVERAGES_5S
from assets.readings.hourly import HOURLY
from assets.readings.streams import READING_STREAMS
from assets.samples import SAMPLES
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.suites import suites_of
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from simulator.feeds import drip_feeds
from simulator.readings.feeds import sensor_feeds
from simulator.readings.world import SensorWorld
from tests.oracles.readings import SensorOracle, celsius, gaps, hourly
from tests.spark.helpers.delta_rows import delta_rows
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days

# Ten minutes around midnight.
BEGINNING = datetime(2024, 2, 29, 23, 55, tzinfo=UTC)
LENGTH = timedelta(minutes=10)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)

AMBIENT = "ambient_temperature_system_failure"
MACHINE = "machine_temperature_system_failure"

LIBRARY_R2 = ["1163462403453 20 999 19,97 2,73 51,98 20,72 1 1", ""]
LIBRARY_R3 = [
    "1163462463453 20 1\N{NO-BREAK SPACE}000 19,97 2,73 51,98 20,75 1 1",
    "1163462463900 20 1\N{NO-BREAK SPACE}000 19,97 2,73 51,98 20,75 1 1",
    "1163462583453 20 1\N{NO-BREAK SPACE}002 19,97 2,73 51,98 20,78 1\N{NO-BREAK SPACE}100 1",
    "1163462600000 20 2000000000 19,97 2,73 51,98 20,78 1 1",
]
OCCUPANCY = [
    '"date","Temperature","Humidity","Light","CO2","HumidityRatio","Occupancy"',
    '"140","2015-02-03 14:19:00",23.7,26.272,585.2,749.2,0.00476416302416414,1',
    '"141",2015-02-03 14:19:59,23.718,26.29,578.4,760.4,0.00477266099212519,1',
]
RESAVED = [
    "Time,Temperature [Celsius],Humidity [%],Light [Lux],CO2 [PPM],Occupancy [Binary]",
    "2/3/15 14:19,23.7,26.272,585.2,749.2,1",
    "2/18/15 9:19,23.7,26.272,585.2,749.2,1",
    "18/2/15 9:19,23.7,26.272,585.2,749.2,1",
]


@dataclass
class Platform:
    """The platform after a bounded run over everything that landed."""

    spark: SparkSession
    settings: Settings
    landing: Path
    summaries: dict[str, StreamSummary]

    def delta_rows(self, name: str, *columns: str) -> list[Row]:
        return delta_rows(self.settings.lake().path(name), *columns)

    def rows(self, name: str, *columns: str) -> list[tuple[Any, ...]]:
        return sorted((tuple(r) for r in self.delta_rows(name, *columns)), key=repr)


@pytest.fixture(scope="module")
def platform(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Platform:
    settings = Settings(home=tmp_path_factory.mktemp("readings"))
    landing = Landing(Path(settings.landing_root))
    for name in (AMBIENT, MACHINE):
        target = landing.root / "readings/temperatures" / f"{name}.csv.gz"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SAMPLES / "nab" / target.name, target)
        landing.stamp(target)
    for name, lines in (("R2", LIBRARY_R2), ("R3", LIBRARY_R3)):
        text = "\n".join([*lines, ""]).encode("latin-1")
        landing.put_bytes(f"readings/library/{name}.txt", text)
    landing.put("readings/occupancy/datatest.txt", *OCCUPANCY)
    landing.put("readings/occupancy_resaved/occupancy.csv", *RESAVED, end="\r\n")
    drip_feeds(landing.root, sensor_feeds(SensorWorld(), BEGINNING, LENGTH), every=MINUTE)
    topology = Topology(READING_STREAMS)
    summaries = run_bounded(spark, settings, topology, topology.streams, run_id="run")
    return Platform(spark, settings, landing.root, summaries)


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


def test_odd_encoding_decimal_commas_and_marked_thousands_are_numbers(platform: Platform) -> None:
    read = sorted(platform.delta_rows("readings/library"), key=lambda r: r.event_time)

    assert [(r.sequence, r.temperature, r.par) for r in read] == [
        (999, Decimal("20.72"), 1),
        (1000, Decimal("20.75"), 1),
        (1000, Decimal("20.75"), 1),
        (1002, Decimal("20.78"), 1100),
    ]


def test_lost_and_repeated_messages_are_counted(platform: Platform) -> None:
    [hour] = platform.delta_rows("readings/library_hours")
    assert (hour.expected, hour.used, hour.duplicates, hour.missing) == (4, 3, 1, 1)


def test_n040_a_wild_sequence_number_is_quarantined(platform: Platform) -> None:
    [wild] = platform.delta_rows("readings/library_quarantine")
    assert wild.reasons == ["sequence_out_of_range"]
    assert "2000000000" in wild.payload


def test_a_spreadsheets_dates_are_read_month_first_or_set_aside(platform: Platform) -> None:
    read = sorted(utc(r.event_time) for r in platform.delta_rows("readings/occupancy_resaved"))
    aside = platform.delta_rows("readings/occupancy_resaved_quarantine")

    assert read == [
        datetime(2015, 2, 3, 14, 19, tzinfo=UTC),
        datetime(2015, 2, 18, 9, 19, tzinfo=UTC),
    ]
    assert [(r.reasons, r._row) for r in aside] == [(["unreadable_event_time"], 4)]


def test_rows_wider_than_their_header_keep_their_columns(platform: Platform) -> None:
    read = sorted(platform.delta_rows("readings/occupancy"), key=lambda r: r.event_time)
    aside = platform.delta_rows("readings/occupancy_quarantine")

    assert [(r.temperature, r.occupancy) for r in read] == [
        (Decimal("23.700000"), 1),
        (Decimal("23.718000"), 1),
    ]
    assert [r.reasons for r in aside] == [["wrong_number_of_values"]]


@pytest.mark.parametrize(
    ("stream", "day"),
    [
        (AVERAGES_5S, date(2024, 2, 29)),
        pytest.param(HOURLY, date(2014, 1, 7), marks=pytest.mark.long),
    ],
    ids=lambda v: getattr(v, "name", str(v)),
)
def test_a_recomputed_day_has_the_same_rows(platform: Platform, stream: Any, day: date) -> None:
    [table] = stream.tables
    before = platform.rows(table.name, *table.schema.names)

    recompute_days(platform.spark, platform.settings, stream, day)

    assert platform.rows(table.name, *table.schema.names) == before


@pytest.mark.parametrize(
    ("table", "suite"),
    [pair for stream in READING_STREAMS for pair in suites_of(stream)],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_table_meets_its_suite(platform: Platform, table: Table, suite: Suite) -> None:
    rows = DeltaTable(platform.settings.lake().path(table)).to_pyarrow_dataset()

    result = DuckDbEvaluator(rows, table, 0).evaluate(suite)

    assert [f"{f.name}: {f.observed}" for f in result.failures if f.severity != "info"] == []
    assert result.rows > 0


def final_time(sensors: SensorOracle) -> datetime:
    assert sensors.accepted.newest is not None
    return sensors.accepted.newest - timedelta(seconds=5)


def utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)
