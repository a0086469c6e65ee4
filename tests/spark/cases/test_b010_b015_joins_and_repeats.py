"""Cases B010 to B015 and B089: joins of two streams, repeats, empty keys."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Ingest, Stream
from rivermark.model.errors import StreamFailed
from rivermark.operators.repeats import first_of_each
from rivermark.runtime.supervision.heartbeat import HeartbeatStore
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    FOLDER,
    READINGS,
    admit,
    one_file_a_batch,
    reading,
    rows,
    run,
)
from tests.spark.helpers.stateful_streams import ECHOES, answered, answers, distinct

pytestmark = pytest.mark.spark

DAY = 24 * 60
JOINED = answers()
OF_THE_JOIN = JOINED.tables[0]


@pytest.mark.long
def test_b010_a_pair_is_not_followed_by_its_left_row_alone(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, minute in enumerate((0, 3, 20)):
        note = "ride 1" if number == 0 else f"moves {number}"
        landing.put(f"{FOLDER}/{number}.json", reading(minute, note=note))
        landing.put(f"echoes/{number}.json", reading(minute, note=note))
    door = run(spark, settings, *one_file_a_batch(monkeypatch, READINGS, ECHOES))
    assert {s.batches for s in door.values()} == {3}
    run(spark, settings.model_copy(update={"files_per_trigger": 1}), JOINED)

    found = [r for r in rows(spark, settings, OF_THE_JOIN) if r["note"] == "ride 1"]
    assert [r["answered"] for r in found] == [True]


def test_b012_an_unmatched_ride_is_pending_until_time_has_passed_and_never_lost(
    spark: SparkSession, settings: Settings
) -> None:
    admit(settings, reading(0, note="ride 5"))
    admit(settings, reading(0, note="other"), ingest=ECHOES)
    summary = run(spark, settings, JOINED)[JOINED.name]
    assert rows(spark, settings, OF_THE_JOIN) == []
    assert "2 rows of state wait for event time past 2024-03-01T09:59:00+00:00" in summary.pending

    admit(settings, reading(10, note="later"))
    admit(settings, reading(10, note="later"), ingest=ECHOES)
    summary = run(spark, settings, JOINED)[JOINED.name]
    found = {r["note"]: r["answered"] for r in rows(spark, settings, OF_THE_JOIN)}
    # In: two rides. One has found no fare in time, one has; nothing else comes.
    assert found == {"ride 5": False, "later": True}


@pytest.mark.parametrize("reads", [(READINGS, ECHOES), (READINGS,)], ids=["two", "itself"])
def test_b013_a_join_without_a_bound_in_time_is_refused(
    spark: SparkSession, settings: Settings, reads: tuple[Ingest, ...]
) -> None:
    def unbounded(readings: DataFrame, *echoes: DataFrame) -> DataFrame:
        theirs = (*echoes, readings)[0].select(F.col("note").alias("echo_note"))
        joined = readings.join(theirs, F.col("note") == F.col("echo_note"))
        return joined.select("sensor", "at", "note", F.lit(True).alias("answered"))

    admit(settings, reading(0, note="1"))
    admit(settings, reading(0, note="1"), ingest=ECHOES)

    with pytest.raises(StreamFailed, match="never releases rows") as failed:
        run(spark, settings, replace(JOINED, reads=reads, build=unbounded))
    assert "condition on the event times of both sides" in str(failed.value)
    assert rows(spark, settings, OF_THE_JOIN) == []


@pytest.mark.long
def test_b014_ids_are_forgotten_once_the_horizon_has_passed(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    once = within_an_hour()
    for day in range(10):
        lines = [reading(day * DAY + n, note=f"{day}.{n}") for n in range(50)]
        landing.put(f"{FOLDER}/{day}.json", *lines, *lines[:5])
    run(spark, settings, *one_file_a_batch(monkeypatch, READINGS))
    one_day_a_batch = settings.model_copy(update={"files_per_trigger": 1})

    summary = run(spark, one_day_a_batch, once)[once.name]

    assert (summary.rows_in, summary.rows_out, summary.duplicates) == (550, 500, 50)
    assert summary.state_rows <= 100
    assert summary.state_bytes > 0


def within_an_hour() -> Stream:
    return replace(
        distinct(),
        build=lambda rows: rows.transform(
            first_of_each("note", event_time="at", within=timedelta(hours=1))
        ),
        lateness=timedelta(hours=1),
    )


def test_b015_an_event_sent_again_with_another_time_is_a_repeat(
    spark: SparkSession, settings: Settings
) -> None:
    once = distinct()
    admit(settings, reading(30, note="END of ride 42"))
    run(spark, settings, once)
    admit(settings, reading(30 + 3 / 60, note="END of ride 42"))
    summary = run(spark, settings, once)[once.name]

    assert (summary.rows_in, summary.duplicates) == (1, 1)
    assert [r["at"].second for r in rows(spark, settings, once.tables[0])] == [0]


# Short: tests/unit/process/cases, and rows that lack a field in test_admission.py.
@pytest.mark.long
def test_b089_rows_without_a_key_are_set_aside_each_time_they_come(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    once = distinct()
    nobody = [reading(n, sensor=None, note=f"{n}") for n in range(3)]
    for number in range(2):
        landing.put(f"{FOLDER}/{number}.json", *nobody, reading(0, "ride 1", note="ride 1"))
        run(spark, settings, READINGS)
    run(spark, settings, once)

    assert [r["sensor"] for r in rows(spark, settings, once.tables[0])] == ["ride 1"]
    aside = rows(spark, settings, READINGS.quarantine)
    assert [r["reasons"] for r in aside] == [["missing_sensor"]] * 6


@pytest.mark.parametrize(
    ("side", "time"),
    [
        ("left", "at + INTERVAL 1 HOUR - INTERVAL 1 HOUR"),
        ("left", "timestamp_millis(unix_millis(at))"),
        ("right", "CAST(CAST(at AS STRING) AS TIMESTAMP)"),
    ],
)
def test_b011_a_join_one_side_of_which_lost_its_watermark_is_refused_by_side_and_column(
    spark: SparkSession, settings: Settings, side: str, time: str
) -> None:
    def anew(readings: DataFrame, echoes: DataFrame) -> DataFrame:
        if side == "left":
            return answered(readings.withColumn("at", F.expr(time)), echoes)
        return answered(readings, echoes.withColumn("at", F.expr(time)))

    with pytest.raises(StreamFailed, match=f"the {side} side of its LEFT OUTER join") as failed:
        run(spark, settings, replace(JOINED, build=anew))

    assert "the event time 'at' of its input is not passed on" in str(failed.value)
    assert not restartable(settings, JOINED)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda readings, echoes: readings.select("nowhere"), "no column 'nowhere'"),
        (lambda readings, echoes: readings + 1, "TypeError"),
        (
            lambda readings, echoes: echoes.groupBy("note").agg(
                *(F.max(name).alias(name) for name in ("sensor", "at")),
                (F.count("*") > 0).alias("answered"),
            ),
            "without a window of the event time",
        ),
    ],
)
def test_b011_what_only_the_engine_finds_wrong_in_a_declaration_is_not_tried_again(
    spark: SparkSession, settings: Settings, build: Any, reason: str
) -> None:
    with pytest.raises(StreamFailed, match=reason) as failed:
        run(spark, settings, replace(JOINED, build=build))
    assert f"stream '{JOINED.name}' failed" in str(failed.value)
    assert not restartable(settings, JOINED)


def restartable(settings: Settings, stream: Stream) -> bool:
    beat = HeartbeatStore(settings.state).get(stream.name)
    assert beat is not None
    return beat.restartable
