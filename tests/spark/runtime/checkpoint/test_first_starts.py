"""A stream that starts later, or anew, reads its inputs as they are now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Stream
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import FOLDER, READINGS, busiest, reading, rows, run, windows

pytestmark = pytest.mark.spark

FIRST_OF_MARCH = date(2024, 3, 1)
DAY = 24 * 60


@pytest.mark.long
def test_a_stream_that_starts_after_a_backfill_reads_the_corrected_rows_and_drops_none(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    per_window = windows()
    for number, minute in enumerate((0, 3, 6, DAY, DAY + 6)):
        landing.put(f"{FOLDER}/{number}.json", reading(minute), reading(minute + 1, "s2"))
    run(spark, settings, READINGS, per_window)
    corrected = replace(per_window, build=tenfold(per_window))
    recompute_days(spark, settings, corrected, FIRST_OF_MARCH, run_id="correction")
    landing.put(f"{FOLDER}/later.json", reading(2 * DAY))
    run(spark, settings, READINGS, per_window)

    summary = run(spark, settings, busiest(per_window))["test/busiest"]

    assert summary.dropped_by_watermark == 0
    found = rows(spark, settings, busiest(per_window).tables[0], "window_end", "readings")
    ends = [(r["window_end"].day, r["window_end"].minute, r["readings"]) for r in found]
    assert ends == [(1, 5, 20), (1, 10, 10), (2, 5, 1), (2, 10, 1)]


def tenfold(stream: Stream) -> Callable[[DataFrame], DataFrame]:
    def build(readings: DataFrame) -> DataFrame:
        found: DataFrame = stream.build(readings)
        return found.withColumn("readings", 10 * F.col("readings"))

    return build


def test_a_stream_can_run_before_its_input_ever_did(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    landing.put(f"{FOLDER}/1.json", reading(0), reading(9))
    assert run(spark, settings, windows())["test/windows"].rows_in == 0

    run(spark, settings, READINGS)
    run(spark, settings, windows())
    found = rows(spark, settings, windows().tables[0], "readings")
    assert [r["readings"] for r in found] == [1]
