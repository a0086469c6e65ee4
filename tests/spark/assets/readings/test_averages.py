"""Averages per sensor and short window, in degrees Celsius."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from assets.readings.averages import average_per_sensor, averages_of_five_seconds
from rivermark.operators.windows import TumblingWindow
from tests.spark.assets.readings.reading_rows import MINUTE, SECOND, at, readings
from tests.spark.helpers.micro_batches import as_table, plain, streamed

FREEZING, TEN, BOILING = "32.0000", "50.0000", "212.0000"
FOUR_READINGS = [
    (0 * SECOND, FREEZING),
    (1 * SECOND, TEN),
    (4.999 * SECOND, BOILING),
    # Exactly on the border: it belongs to the later window.
    (5 * SECOND, BOILING),
]
CLOSER = (MINUTE, FREEZING)
RESULT = ("window_end", "celsius", "readings")


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (5 * SECOND, [(5, "36.6667", 3), (10, "100.0000", 1)]),
        (1 * SECOND, [(1, "0.0000", 1), (2, "10.0000", 1), (5, "100.0000", 1), (6, "100.0000", 1)]),
    ],
    ids=["five seconds", "one second"],
)
def test_the_window_size_is_a_parameter(
    spark: SparkSession, size: timedelta, expected: list[tuple[int, str, int]]
) -> None:
    averages = average_per_sensor(as_table(spark, readings(FOUR_READINGS)), TumblingWindow(size))

    assert plain(averages.collect(), *RESULT) == sorted(
        [(at(end * SECOND), Decimal(celsius), n) for end, celsius, n in expected], key=repr
    )


@pytest.mark.long
def test_order_and_repeats_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    first, second, third, fourth = FOUR_READINGS
    orderly = readings([first, second], [third, fourth], [CLOSER])
    # The same readings, numbered as they were taken, out of order and two of them twice.
    one, two = orderly.batches[:2]
    shuffled = replace(
        orderly,
        batches=[[two[1], one[1], one[1]], [two[0], one[0], two[1]], orderly.batches[2]],
    )

    calm = streamed(spark, tmp_path / "calm", averages_of_five_seconds, orderly)
    wild = streamed(spark, tmp_path / "wild", averages_of_five_seconds, shuffled)
    table = averages_of_five_seconds(as_table(spark, shuffled)).where(
        "window_end < '2024-03-01 00:01'"
    )

    assert len(calm.rows) == 2
    assert plain(calm.rows, *RESULT) == plain(wild.rows, *RESULT)
    assert plain(calm.rows, *RESULT) == plain(table.collect(), *RESULT)
    assert wild.dropped_as_late == 0
