"""A run that ends at any commit is finished by the next one: nothing doubled, nothing lost."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rivermark import Output, Stream, Table
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.errors import StreamFailed
from rivermark.settings import Settings
from tests.spark.helpers.crashes import crash_once, forget_last_commit
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.oracle import through_the_door
from tests.spark.helpers.sensors import FOLDER, READINGS, reading, rows, run, windows
from tests.spark.ingest.test_admission import assert_lands_as_expected

pytestmark = pytest.mark.spark


def land_all_kinds(landing: Landing, hour: int) -> None:
    """A good, a late, a broken row and an unreadable file, all within one batch."""
    first = 60.0 * hour
    landing.put(f"{FOLDER}/{hour}a.json", reading(first + 5), reading(first + 6, "s2"))
    landing.put(f"{FOLDER}/{hour}b.json", reading(first, "s3"), reading(first + 9), "{")
    landing.put(f"{FOLDER}/{hour}c.json")


@pytest.mark.long
def test_a_crash_at_any_commit_of_the_door_changes_nothing(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = [t.name for t in (READINGS.raw, READINGS.admitted, READINGS.late, READINGS.quarantine)]
    points = [(tables[0], True), *((t, False) for t in (*tables, INGEST_FILES.name))]
    for hour, (table, before) in enumerate(points):
        land_all_kinds(landing, hour)
        with monkeypatch.context() as patch:
            crash_once(patch, table, before=before)
            with pytest.raises(StreamFailed, match=f"crashed at {table}") as failed:
                run(spark, settings, READINGS)
            assert failed.value.stream == READINGS.name
        summary = run(spark, settings, READINGS)[READINGS.name]
        assert (summary.rows_in, summary.admitted, summary.late, summary.quarantined) == (
            5,
            3,
            1,
            1,
        )

    expected = through_the_door(Path(settings.landing_root) / FOLDER)
    assert_lands_as_expected(spark, settings, READINGS, expected)
    files = Counter(r["file"] for r in rows(spark, settings, INGEST_FILES))
    assert files == {f"{hour}{letter}.json": 1 for hour in range(len(points)) for letter in "abc"}


@pytest.mark.long
def test_b021_a_crash_before_the_checkpoint_hears_of_the_batch_changes_nothing(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    land_all_kinds(landing, 0)
    landing.put(f"{FOLDER}/closes.json", reading(12))
    run(spark, settings, READINGS, windows())
    assert len(window_rows(spark, settings)) == 2

    forget_last_commit(settings, READINGS)
    forget_last_commit(settings, windows())
    landing.put(f"{FOLDER}/later.json", reading(30))
    run(spark, settings, READINGS, windows())

    expected = through_the_door(Path(settings.landing_root) / FOLDER)
    assert_lands_as_expected(spark, settings, READINGS, expected)
    found = [
        (r["sensor"], r["window_start"].minute, r["readings"]) for r in window_rows(spark, settings)
    ]
    assert found == [("s1", 5, 2), ("s1", 10, 1), ("s2", 5, 1)]


def test_b021_a_batch_of_two_tables_that_crashed_between_them_is_in_both_once(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = warm_and_cold()
    warm, cold = split.tables
    landing.put(f"{FOLDER}/1.json", reading(0, temperature=30), reading(1, temperature=-5))
    run(spark, settings, READINGS)
    with monkeypatch.context() as patch:
        crash_once(patch, warm.name)
        with pytest.raises(StreamFailed, match="crashed"):
            run(spark, settings, split)
    assert (len(rows(spark, settings, warm)), len(rows(spark, settings, cold))) == (1, 0)

    run(spark, settings, split)
    forget_last_commit(settings, split)
    run(spark, settings, split)

    assert (len(rows(spark, settings, warm)), len(rows(spark, settings, cold))) == (1, 1)


@pytest.mark.long
def test_a_window_that_was_written_before_the_crash_is_not_written_again_and_the_next_one_is(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    per_sensor = windows()
    landing.put(f"{FOLDER}/1.json", reading(0), reading(1), reading(7))
    run(spark, settings, READINGS)
    with monkeypatch.context() as patch:
        crash_once(patch, per_sensor.tables[0].name)
        with pytest.raises(StreamFailed, match="crashed"):
            run(spark, settings, per_sensor)
    landing.put(f"{FOLDER}/2.json", reading(8), reading(20))
    run(spark, settings, READINGS, per_sensor)

    counts = {r["window_start"].minute: r["readings"] for r in window_rows(spark, settings)}
    assert counts == {0: 2, 5: 2}
    assert len(window_rows(spark, settings)) == 2


def window_rows(spark: SparkSession, settings: Settings) -> list[Row]:
    return rows(spark, settings, windows().tables[0])


def warm_and_cold() -> Stream:
    """Readings above and below zero, in two tables by one query."""

    def split(rows: DataFrame) -> DataFrame:
        return rows.select("sensor", "at", "temperature")

    def table(name: str) -> Table:
        schema = StructType(READINGS.admitted.schema.fields[:3])
        return Table(name=name, schema=schema, description=name, event_time="at")

    def warm() -> Column:
        return F.col("temperature") >= 0

    return Stream(
        name="test/split",
        reads=(READINGS,),
        build=split,
        writes=(
            Output(table("test/warm"), warm),
            Output(table("test/cold"), lambda: F.col("temperature") < 0),
        ),
        description="Readings above and below zero.",
        group="test",
        volume="events",
    )
