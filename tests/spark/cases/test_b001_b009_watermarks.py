"""Cases B001 to B009: watermarks and late data."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from rivermark import Stream
from rivermark.operators.windows import TumblingWindow, per_window
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    FOLDER,
    MINUTE,
    READINGS,
    admit,
    busiest,
    reading,
    readings,
    rows,
    run,
    windows,
)
from tests.spark.helpers.stateful_streams import ECHOES, answers

pytestmark = pytest.mark.spark

HOUR = 60.0
DAY = 24 * HOUR


def window_rows(spark: SparkSession, settings: Settings) -> list[Row]:
    return rows(spark, settings, windows().tables[0])


def test_b001_one_reading_of_the_next_day_is_set_aside_and_moves_nothing(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    careful = readings(max_jump=timedelta(hours=1))
    landing.put(f"{FOLDER}/1.json", *[reading(m, "sensor_1") for m in range(10)])
    landing.put(f"{FOLDER}/2.json", reading(DAY - 1, "sensor_9"))
    landing.put(f"{FOLDER}/3.json", *[reading(m, "sensor_1") for m in range(10, 20)])
    landing.put(f"{FOLDER}/4.json", reading(25, "sensor_2"))

    door = run(spark, settings, careful, windows(careful, minutes=1))[careful.name]

    assert (door.late, door.quarantined) == (0, 1)
    counted = [r for r in window_rows(spark, settings) if r["sensor"] == "sensor_1"]
    assert [r["window_start"].minute for r in counted] == [*range(20)]
    assert {r["readings"] for r in counted} == {1}
    (aside,) = rows(spark, settings, careful.quarantine)
    assert aside["reasons"] == ["event_time_ahead_of_stream"]
    assert "sensor_9" in aside["payload"]


def test_b001_a_time_ahead_of_the_clock_on_the_wall_is_set_aside_too(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    ten_years = 10 * 365 * DAY
    landing.put(f"{FOLDER}/1.json", reading(0), reading(ten_years, "sensor_9"))
    landing.put(f"{FOLDER}/2.json", reading(1))

    door = run(spark, settings, READINGS)[READINGS.name]

    assert (door.admitted, door.late, door.quarantined) == (2, 0, 1)
    assert rows(spark, settings, READINGS.quarantine)[0]["reasons"] == ["event_time_ahead"]


@pytest.mark.long
def test_b002_fifty_late_rows_are_fifty_and_every_row_is_accounted_for(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    per_window = windows(minutes=10)
    landing.put(f"{FOLDER}/1.json", reading(0), reading(5), reading(20))
    run(spark, settings, READINGS, per_window)
    landing.put(f"{FOLDER}/2.json", *[reading(n / 10) for n in range(50)], "{")

    summaries = run(spark, settings, READINGS, per_window)

    door = summaries[READINGS.name]
    assert (door.rows_in, door.admitted, door.late, door.quarantined) == (51, 0, 50, 1)
    assert summaries[per_window.name].dropped_by_watermark == 0
    assert len(rows(spark, settings, READINGS.late)) == 50
    assert [r["readings"] for r in window_rows(spark, settings)] == [2]


def test_b003_with_the_least_lateness_a_row_as_new_as_the_newest_is_counted(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    strict = readings(lateness=timedelta(milliseconds=1))
    for number, (minute, sensor) in enumerate([(0, "sensor_1"), (0, "sensor_2"), (1, "sensor_2")]):
        landing.put(f"{FOLDER}/{number}.json", reading(minute / 60, sensor))
        run(spark, settings, strict)

    assert len(rows(spark, settings, strict.admitted)) == 3


def test_b004_a_window_that_a_bounded_run_leaves_open_is_told_and_comes_later(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    hourly = windows(minutes=60)
    temperatures = zip((0, 5, 55), (70, 72, 74), strict=True)
    landing.put(f"{FOLDER}/1.json", *[reading(m, temperature=t) for m, t in temperatures])
    summary = run(spark, settings, READINGS, hourly)[hourly.name]
    assert window_rows(spark, settings) == []
    assert summary.pending == ["1 rows of state wait for event time past 2024-03-01T10:54:00+00:00"]

    landing.put(f"{FOLDER}/2.json", reading(70))
    run(spark, settings, READINGS, hourly)
    (closed,) = window_rows(spark, settings)
    assert (closed["readings"], closed["total"] / closed["readings"]) == (3, Decimal(72))


def test_b005_what_waits_for_a_quiet_input_is_told_with_its_name(
    spark: SparkSession, settings: Settings
) -> None:
    joined = answers()
    rides = reading(0, note="1"), reading(30, note="5"), reading(120, note="9")
    admit(settings, *rides)
    admit(settings, reading(0, note="1"), ingest=ECHOES)
    summary = run(spark, settings, joined)[joined.name]
    assert [r["note"] for r in rows(spark, settings, joined.tables[0])] == ["1"]
    assert (
        "its inputs have come to test/echoes at 2024-03-01T10:00:00+00:00, test/readings at "
        "2024-03-01T12:00:00+00:00: results wait for test/echoes"
    ) in summary.pending

    # Spark forgets at a stop how far each input had come: both must go on in one run.
    admit(settings, reading(105, note="other"), ingest=ECHOES)
    admit(settings, reading(121, note="10"))
    run(spark, settings, joined)
    found = {r["note"]: r["answered"] for r in rows(spark, settings, joined.tables[0])}
    assert found == {"1": True, "5": False}


@pytest.mark.long
def test_b006_two_feeds_in_one_window_wait_for_the_slower_one(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    hourly = windows(minutes=60)

    def both(left: DataFrame, right: DataFrame) -> DataFrame:
        found: DataFrame = hourly.build(left.unionByName(right))
        return found

    union = replace(hourly, reads=(READINGS, ECHOES), build=both)
    landing.put(f"{FOLDER}/1.json", reading(0, "A"), reading(120, "A"))
    landing.put("echoes/1.json", *[reading(55 + n / 4, "B") for n in range(19)])
    run(spark, settings, READINGS, ECHOES, union)
    landing.put("echoes/2.json", reading(59.9, "B"), reading(125, "B"))
    landing.put(f"{FOLDER}/2.json", reading(126, "A"))

    summary = run(spark, settings, READINGS, ECHOES, union)[union.name]

    assert summary.dropped_by_watermark == 0
    first = [r for r in window_rows(spark, settings) if r["window_start"].hour == 10]
    assert {r["sensor"]: r["readings"] for r in first} == {"A": 1, "B": 20}


# Short: the winners of each hour in tests/spark/cli/test_console.py.
@pytest.mark.long
def test_b007_the_best_of_each_hour_follows_the_sums_of_each_hour(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    tips = hourly_tips()
    best = busiest(tips)
    fares = [(10, "1", 5), (20, "2", 9), (40, "1", 2), (150, "3", 0)]
    landing.put(f"{FOLDER}/1.json", *[reading(m, d, temperature=t) for m, d, t in fares])

    summary = run(spark, settings, READINGS, tips, best)[best.name]

    assert summary.dropped_by_watermark == 0
    (winner,) = rows(spark, settings, best.tables[0])
    assert (winner["window_end"].hour, winner["sensor"], winner["readings"]) == (11, "2", 9)


def hourly_tips() -> Stream:
    """Tips per driver and hour: the temperature stands for the tip."""

    def sums(fares: DataFrame) -> DataFrame:
        tips = F.sum("temperature").cast("long")
        hours = per_window(fares, TumblingWindow(60 * MINUTE), "at", "sensor", readings=tips)
        return hours.withColumn("total", F.lit(None).cast("decimal(19,3)"))

    return windows(build=sums)


# Short: tests/spark/runtime/query/test_refresh.py.
@pytest.mark.long
def test_b008_a_dump_in_no_order_of_time_gives_the_counts_of_a_plain_batch(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    dump = readings(lateness=None)
    hourly = windows(dump, minutes=60, kind="refresh")
    minutes = [(37 * n) % 600 for n in range(200)]
    for first in range(0, 200, 20):
        lines = [reading(m) for m in minutes[first : first + 20]]
        landing.put(f"{FOLDER}/{first}.json", *lines)

    summaries = run(spark, settings, dump, hourly)

    assert summaries[dump.name].admitted == 200
    counted = {r["window_start"].hour: r["readings"] for r in window_rows(spark, settings)}
    assert counted == {10 + h: sum(h <= m / 60 < h + 1 for m in minutes) for h in range(10)}


def test_b009_a_reading_without_a_time_is_set_aside_and_leaves_no_state(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    per_window = windows()
    empty = '{"sensor": "sensor_3", "at": "", "temperature": 71.0}'
    no_time = '{"sensor": "sensor_3", "at": "not a time", "temperature": 72.0}'
    landing.put(f"{FOLDER}/1.json", empty, no_time, reading(0, "sensor_3", 73.0), reading(9))
    summary = run(spark, settings, READINGS, per_window)[per_window.name]

    (window,) = window_rows(spark, settings)
    assert (window["sensor"], window["readings"], window["total"]) == ("sensor_3", 1, Decimal(73))
    aside = rows(spark, settings, READINGS.quarantine, "reasons", "payload")
    assert [tuple(r) for r in aside] == [(["missing_at"], empty), (["unreadable_at"], no_time)]
    # Only the window of 10:05, which is still open.
    assert summary.state_rows == 1
