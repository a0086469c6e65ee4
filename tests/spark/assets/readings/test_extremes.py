"""Lowest and highest temperature per window of every kind."""

from datetime import timedelta
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from assets.readings.extremes import extremes_per_sensor
from rivermark.operators.windows import (
    EventWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    per_window,
)
from tests.spark.assets.readings.reading_rows import MINUTE, SECOND, at, readings
from tests.spark.helpers.micro_batches import as_table, plain

QUARTER = 15 * MINUTE
HOUR = timedelta(hours=1)
SERIES = [(n * SECOND, f"{(n * 37) % 23 - 11}.5000") for n in range(0, 60, 4)]


def extremes_of_content(readings: DataFrame, window: EventWindow) -> DataFrame:
    """The same by keeping every reading of a window and looking through them at its end."""
    kept = per_window(
        readings, window, "event_time", "sensor_id", all=F.collect_list("temperature")
    )
    return kept.select(
        "*", F.array_min("all").alias("minimum"), F.array_max("all").alias("maximum")
    )


@pytest.mark.parametrize("size", [15 * SECOND, MINUTE], ids=str)
def test_incremental_and_full_content_extremes_agree(spark: SparkSession, size: timedelta) -> None:
    table = as_table(spark, readings(SERIES))
    columns = ("sensor_id", "minimum", "maximum", "window_end")

    incremental = extremes_per_sensor(table, TumblingWindow(size)).collect()

    assert plain(incremental, *columns) == plain(
        extremes_of_content(table, TumblingWindow(size)).collect(), *columns
    )
    assert len(incremental) == MINUTE // size


def test_a_window_of_frost_has_a_maximum_below_zero(spark: SparkSession) -> None:
    table = as_table(spark, readings([(SECOND, "-3.0000"), (2 * SECOND, "-8.0000")]))

    [row] = extremes_per_sensor(table, TumblingWindow(MINUTE)).collect()

    assert (row.minimum, row.maximum) == (Decimal("-8.0000"), Decimal("-3.0000"))


@pytest.mark.parametrize(
    ("window", "ends"),
    [
        (SlidingWindow(HOUR, every=QUARTER), [QUARTER, 2 * QUARTER, 3 * QUARTER, 4 * QUARTER]),
        (TumblingWindow(HOUR, offset=QUARTER), [QUARTER]),
        (SessionWindow(QUARTER), [12 * SECOND + QUARTER]),
    ],
    ids=["sliding", "shifted", "session"],
)
def test_one_reading_lies_in_the_windows_it_should(
    spark: SparkSession, window: EventWindow, ends: list[timedelta]
) -> None:
    table = as_table(spark, readings([(12 * SECOND, "60.0000")]))

    found = extremes_per_sensor(table, window).collect()

    assert plain(found, "window_end") == sorted([(at(end),) for end in ends], key=repr)


def test_readings_exactly_a_gap_apart_are_one_session(spark: SparkSession) -> None:
    apart = [(0 * SECOND, "1.0000"), (QUARTER, "2.0000"), (2 * QUARTER + SECOND, "3.0000")]

    sessions = extremes_per_sensor(as_table(spark, readings(apart)), SessionWindow(QUARTER))

    assert plain(sessions.collect(), "readings", "window_start") == [
        (1, at(2 * QUARTER + SECOND)),
        (2, at(0 * SECOND)),
    ]
