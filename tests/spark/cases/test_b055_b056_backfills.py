"""Cases B055 and B056: backfills beside streams; of refreshed tables see tests/spark/engine."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import date

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import AnyStream, Stream, Topology
from rivermark.backfill.follow_ups import streams_behind
from rivermark.lake.snapshot import row_count
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.backfill.beside_a_stream import backfills_beside_a_stream
from tests.spark.helpers.background import running
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import FOLDER, READINGS, reading, rows, windows
from tests.spark.helpers.stateful_streams import distinct

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


@pytest.mark.long
def test_b055_gold_keeps_running_and_is_named_as_the_follow_up_of_a_corrected_day(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    def body(stop: threading.Event) -> object:
        streams: list[AnyStream] = [READINGS, SILVER, GOLD]
        return run_continuous(spark, settings, TOPOLOGY, streams, run_id="live", stop=stop)

    land_a_day_and_more(landing)
    with running(body) as thread:
        wait_until(
            lambda: row_count(settings.lake(), GOLD.tables[0]) == 1,
            reason="the day is closed",
            alive=thread.alive,
        )
        report = recompute_days(
            spark, settings, corrected(SILVER), FIRST_OF_MARCH, run_id="correction"
        )
        landing.put(f"{FOLDER}/3.json", reading(2 * DAY + 90, note="later"))
        wait_until(
            lambda: row_count(settings.lake(), GOLD.tables[0]) == 2,
            reason="gold goes on",
            alive=thread.alive,
        )

    difference = report.tables[SILVER.name].difference
    assert (difference.removed, difference.unchanged) == (2, 98)
    assert gold_of_the_day(spark, settings) == [100]
    assert streams_behind(TOPOLOGY, report) == [GOLD.name]

    recompute_days(spark, settings, GOLD, FIRST_OF_MARCH, run_id="follow-up")
    assert gold_of_the_day(spark, settings) == [98]


@pytest.mark.long
def test_b056_backfills_of_a_closed_day_a_live_stream_and_a_compaction_all_succeed(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    found = backfills_beside_a_stream(spark, settings, landing, times=4)

    assert found.silver == found.expected
    assert found.gold.items() <= found.expected_gold.items()
    assert [done.same for done in found.done] == [True] * 4
    assert [done.kind for done in found.done] == ["replaced"] * 4
