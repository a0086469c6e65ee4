"""Refreshed tables: the touched days alone, however often, and never from an older look."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, LongType, StructField, StructType

from rivermark import Daily, Ingest, Output, Stream, Table
from rivermark.lake.locks import days_lock
from rivermark.lake.log import CommitLog
from rivermark.model.errors import StreamFailed
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.runtime.spark import input_size
from rivermark.settings import Settings
from tests.spark.helpers.background import Running
from tests.spark.helpers.crashes import forget_last_commit
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import FIRST_DAY, FOLDER, admit, reading, readings, rows, run

pytestmark = pytest.mark.spark

DUMP = readings(lateness=None)
DAY = 24 * 60
NOW = datetime(2024, 3, 4, tzinfo=UTC)
MARCH = [date(2024, 3, d) for d in (1, 2, 3)]


def per_day(
    name: str = "test/days",
    source: Ingest | Stream = DUMP,
    build: Callable[[DataFrame], DataFrame] | None = None,
    **more: object,
) -> Stream:
    """Readings a day."""

    def count(readings: DataFrame) -> DataFrame:
        return readings.groupBy(F.to_date("at").alias("day")).agg(F.count("*").alias("readings"))

    return Stream(
        name=name,
        reads=(source,),
        build=build or count,
        writes=day_table(name),
        description="Readings a day.",
        group="test",
        kind="refresh",
        **more,  # type: ignore[arg-type]
    )


def day_table(name: str) -> Table:
    schema = StructType([StructField("day", DateType()), StructField("readings", LongType())])
    return Table(name=name, schema=schema, description=name, days=Daily("day", FIRST_DAY))


def counts(spark: SparkSession, settings: Settings, name: str = "test/days") -> dict[date, int]:
    found = rows(spark, settings, day_table(name))
    assert len({r["day"] for r in found}) == len(found)
    return {r["day"]: r["readings"] for r in found}


def test_only_touched_days_are_computed_again_and_a_replay_changes_nothing(
    spark: SparkSession, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    days = per_day()
    admit(settings, *[reading(DAY * d + m) for d in range(3) for m in range(d + 1)])
    run(spark, settings, days)
    assert counts(spark, settings) == dict(zip(MARCH, (1, 2, 3), strict=True))

    admit(settings, reading(DAY + 90), reading(DAY + 91))
    log = CommitLog(settings.lake().path(days.tables[0]))
    before = log.versions()[-1]
    summary = run(spark, settings, days)[days.name]
    assert counts(spark, settings) == dict(zip(MARCH, (1, 4, 3), strict=True))
    assert (summary.rows_in, summary.rows_out) == (2, 1)
    assert log.versions()[-1] == before + 1

    forget_last_commit(settings, days)
    # What the days are is asked of executors, as for a batch that the driver may not hold.
    monkeypatch.setattr(input_size, "DRIVER_BYTES", 0)
    again = run(spark, settings, days)[days.name]
    assert (again.rows_in, again.rows_out) == (2, 1)
    assert counts(spark, settings) == dict(zip(MARCH, (1, 4, 3), strict=True))


def test_b058_rows_without_a_day_are_counted_and_fail_a_check(
    spark: SparkSession, settings: Settings
) -> None:
    hot = F.when(F.col("temperature") < 50, F.to_date("at"))

    def count(readings: DataFrame) -> DataFrame:
        # A reading that was read for its day, and has none in the result.
        known = F.when(F.col("temperature") > 10, F.to_date("at"))
        return readings.groupBy(known.alias("day")).agg(F.count("*").alias("readings"))

    days = per_day(build=count, touches=lambda: hot)
    check = next(c for c in checks_of_stream(days) if c.name == "every_row_has_a_day")
    admit(settings, reading(0), reading(1, temperature=90), reading(2, temperature=5))
    summary = run(spark, settings, days)[days.name]

    assert counts(spark, settings) == {MARCH[0]: 1}
    # One touches no day, one row of the result has none.
    assert summary.counters == {"rows_without_a_day": 2}
    result = check.evaluate(settings, NOW)
    assert not result.passed
    assert "2 rows have no day, and are in no table" in result.observed


@pytest.mark.long
def test_several_tables_are_refreshed_together(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    many, few = day_table("test/many"), day_table("test/few")
    outputs = (
        Output(many, lambda: F.col("readings") > 1),
        Output(few, lambda: F.col("readings") <= 1),
    )
    split = replace(per_day("test/split"), writes=outputs, volume="events")
    landing.put(f"{FOLDER}/1.json", reading(0), reading(DAY), reading(DAY + 1))
    run(spark, settings, DUMP, split)
    assert counts(spark, settings, many.name) == {MARCH[1]: 2}
    assert counts(spark, settings, few.name) == {MARCH[0]: 1}

    # By the driver first, then by executors.
    monkeypatch.setattr(input_size, "DRIVER_BYTES", 0)
    landing.put(f"{FOLDER}/2.json", reading(1))
    run(spark, settings, DUMP, split)
    assert counts(spark, settings, many.name) == {MARCH[0]: 2, MARCH[1]: 2}
    assert counts(spark, settings, few.name) == {}


@pytest.mark.long
def test_b055_a_refreshed_table_that_reads_a_refreshed_table_follows_each_replacement(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    days = per_day()
    twice = per_day(
        "test/twice",
        days,
        lambda days: days.select("day", (2 * F.col("readings")).alias("readings")),
        touches=lambda: F.col("day"),
    )
    for number in range(2):
        landing.put(f"{FOLDER}/{number}.json", reading(number), reading(DAY + number))
        run(spark, settings, DUMP, days, twice)
        readings = 2 * (number + 1)
        assert counts(spark, settings, "test/twice") == {MARCH[0]: readings, MARCH[1]: readings}


@pytest.mark.long
def test_b056_a_backfill_never_puts_back_what_a_refresh_replaced_meanwhile(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, landed, asked = threading.Event(), threading.Event(), threading.Event()
    live = per_day()
    log = CommitLog(settings.lake().path(live.tables[0]))
    last_runs = []

    @contextmanager
    def watched(path: str) -> Iterator[None]:
        asked.set()
        with days_lock(path):
            last_runs.append(next(c.metadata.get("run") for c in log.backwards()))
            yield

    def slow(readings: DataFrame) -> DataFrame:
        # The inputs are pinned: what lands from here on is not seen.
        looked.set()
        landed.wait(60)
        return live.build(readings)

    landing.put(f"{FOLDER}/1.json", reading(0))
    run(spark, settings, DUMP, live)
    backfill = Running(
        lambda _stop: recompute_days(
            spark, settings, replace(live, build=slow), MARCH[0], run_id="backfill"
        )
    )
    assert looked.wait(60)
    landing.put(f"{FOLDER}/2.json", reading(1))
    run(spark, settings, DUMP)
    monkeypatch.setattr("rivermark.runtime.query.refresh.days_lock", watched)
    refresh = Running(lambda _stop: run(spark, settings, live))
    assert asked.wait(60)
    landed.set()
    backfill.join()
    refresh.join()

    assert last_runs == ["backfill"]
    assert counts(spark, settings) == {MARCH[0]: 2}


def test_a_row_that_would_not_be_read_again_stops_the_stream_instead_of_getting_lost(
    spark: SparkSession, settings: Settings
) -> None:
    elsewhere = per_day(touches=lambda: F.date_sub(F.to_date("at"), 10))
    admit(settings, reading(0))

    with pytest.raises(StreamFailed, match="a row lies 10 days from the day that it touches"):
        run(spark, settings, elsewhere)
