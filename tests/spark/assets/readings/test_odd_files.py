"""Files of loggers and spreadsheets, from landing into tables."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import pytest
from pyspark.sql import SparkSession

from assets.readings.ingest import LIBRARY, OCCUPANCY, OCCUPANCY_RESAVED
from assets.readings.library import LIBRARY_HOURS
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.suites import suites_of
from tests.spark.assets.readings.platform import Platform, utc
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.meets_suite import assert_meets

STREAMS = (LIBRARY, LIBRARY_HOURS, OCCUPANCY, OCCUPANCY_RESAVED)
LIBRARY_R2 = ["1163462403453 20 999 19,97 2,73 51,98 20,72 1 1", ""]
LIBRARY_R3 = [
    "1163462463453 20 1\N{NO-BREAK SPACE}000 19,97 2,73 51,98 20,75 1 1",
    "1163462463900 20 1\N{NO-BREAK SPACE}000 19,97 2,73 51,98 20,75 1 1",
    "1163462583453 20 1\N{NO-BREAK SPACE}002 19,97 2,73 51,98 20,78 1\N{NO-BREAK SPACE}100 1",
    "1163462600000 20 2000000000 19,97 2,73 51,98 20,78 1 1",
]
OCCUPANCY_LINES = [
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


def land(landing: Landing) -> None:
    for name, lines in (("R2", LIBRARY_R2), ("R3", LIBRARY_R3)):
        text = "\n".join([*lines, ""]).encode("latin-1")
        landing.put_bytes(f"readings/library/{name}.txt", text)
    landing.put("readings/occupancy/datatest.txt", *OCCUPANCY_LINES)
    landing.put("readings/occupancy_resaved/occupancy.csv", *RESAVED, end="\r\n")


@pytest.fixture(scope="module")
def platform(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Platform:
    return Platform.drained(spark, tmp_path_factory.mktemp("files"), STREAMS, land)


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
    ("table", "suite"),
    [pair for stream in STREAMS for pair in suites_of(stream)],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_table_meets_its_suite(platform: Platform, table: Table, suite: Suite) -> None:
    assert_meets(platform.settings.lake(), table, suite)
