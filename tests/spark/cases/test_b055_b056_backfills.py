"""Cases B055 and B056: backfills beside streams; of refreshed tables see tests/spark/engine."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import date

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import AnyStream, Stream, Topology
from rivermark.lake.stats import row_count
from rivermark.runtime.recompute import recompute
from rivermark.runtime.run import run_continuous
from rivermark.settings import Settings
from tests.spark.engine.echoes import distinct
from tests.spark.engine.sensors import FOLDER, READINGS, reading, rows, run, windows
from tests.spark.landing import Landing
from tests.spark.waiting import running, until

pytestmark = pytest.mark.spark

FIRST_OF_MARCH = date(2024, 3, 1)
DAY = 24 * 60
SILVER = distinct()
GOLD = windows(SILVER, minutes=60)
TOPOLOGY = Topology([READINGS, SILVER, GOLD])


def corrected(silver: Stream) -> Stream:
    """Silver without the two readings that turned out to be wrong."""

    def build(readings: DataFrame) -> DataFrame:
        found: DataFrame = silver.build(readings)
        return found.where(~F.col("note").isin("98", "99"))

    return replace(silver, build=build)


def land_a_day_and_more(landing: Landing) -> None:
    """A hundred readings on the first of March, and two days later one that closes it."""
    landing.put(f"{FOLDER}/1.json", *[reading(n / 10, note=f"{n}") for n in range(100)])
    landing.put(f"{FOLDER}/2.json", reading(2 * DAY, note="closes"))


def gold_of_the_day(spark: SparkSession, settings: Settings) -> list[int]:
    found = rows(spark, settings, GOLD.tables[0], "window_start", "readings")
    return [r["readings"] for r in found if r["window_start"].day == 1]


def test_b055_gold_keeps_running_and_is_named_as_the_follow_up_of_a_corrected_day(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    def body(stop: threading.Event) -> object:
        streams: list[AnyStream] = [READINGS, SILVER, GOLD]
        return run_continuous(spark, settings, TOPOLOGY, streams, run_id="live", stop=stop)

    land_a_day_and_more(landing)
    with running(body) as thread:
        until(
            lambda: row_count(settings.lake(), GOLD.tables[0]) == 1,
            "the day is closed",
            thread.alive,
        )
        report = recompute(
            spark, settings, corrected(SILVER), FIRST_OF_MARCH, FIRST_OF_MARCH, run_id="correction"
        )
        landing.put(f"{FOLDER}/3.json", reading(2 * DAY + 90, note="later"))
        until(lambda: row_count(settings.lake(), GOLD.tables[0]) == 2, "gold goes on", thread.alive)

    assert report.rows_before == {SILVER.name: 101}
    assert report.rows_after == {SILVER.name: 99}
    assert gold_of_the_day(spark, settings) == [100]
    assert report.follow_ups(TOPOLOGY) == [GOLD]

    recompute(spark, settings, GOLD, FIRST_OF_MARCH, FIRST_OF_MARCH, run_id="follow-up")
    assert gold_of_the_day(spark, settings) == [98]


def test_b056_a_backfill_of_a_closed_day_and_the_live_stream_both_succeed(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    land_a_day_and_more(landing)
    run(spark, settings, READINGS, SILVER)

    def body(stop: threading.Event) -> object:
        streams: list[AnyStream] = [READINGS, SILVER]
        return run_continuous(spark, settings, TOPOLOGY, streams, run_id="live", stop=stop)

    with running(body) as thread:
        for number in range(2):
            landing.put(
                f"{FOLDER}/live {number}.json", reading(2 * DAY + number, note=f"l{number}")
            )
            recompute(spark, settings, SILVER, FIRST_OF_MARCH, FIRST_OF_MARCH, run_id=f"{number}")
        until(lambda: row_count(settings.lake(), SILVER.tables[0]) == 103, "103 rows", thread.alive)

    notes = [r["note"] for r in rows(spark, settings, SILVER.tables[0], "note")]
    assert sorted(notes) == sorted({*map(str, range(100)), "closes", "l0", "l1"})
