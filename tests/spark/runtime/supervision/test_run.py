"""Runs as a whole: stops between batches, failures by stream, one run a stream."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Stream, Table, Topology
from rivermark.lake.snapshot import row_count
from rivermark.model.errors import StreamAlreadyRunning, StreamFailed
from rivermark.model.restart_strategy import FixedDelay, NoRestart, RestartStrategy
from rivermark.runtime.query.append import AppendHost
from rivermark.runtime.query.base import QueryHost
from rivermark.runtime.supervision.heartbeat import FAILURES, Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.background import Running, running
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, admit, reading, rows, run, windows

pytestmark = pytest.mark.spark

PER_WINDOW = windows()
WINDOWS = PER_WINDOW.tables[0]


def live(spark: SparkSession, settings: Settings, *streams: Any, run_id: str = "live") -> Any:
    """The body of a run that goes on until it is stopped."""

    def body(stop: threading.Event) -> object:
        topology = Topology(streams)
        return run_continuous(spark, settings, topology, streams, run_id=run_id, stop=stop)

    return body


def slow_batches(patch: pytest.MonkeyPatch, seconds: float) -> threading.Event:
    """Let every batch of an append stream rest before its write; tells when one does."""
    resting, write = threading.Event(), AppendHost.write

    def slow(self: AppendHost, frame: DataFrame, batch: int) -> Any:
        resting.set()
        threading.Event().wait(seconds)
        return write(self, frame, batch)

    patch.setattr(AppendHost, "write", slow)
    return resting


def test_b023_a_stop_waits_for_the_batch_that_is_being_written(
    spark: SparkSession, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    admit(settings, reading(0), reading(9))
    with monkeypatch.context() as patch:
        resting = slow_batches(patch, 0.7)
        with running(live(spark, settings, PER_WINDOW)) as thread:
            wait_until(resting.is_set, reason="a batch rests", alive=thread.alive)
        assert thread.result[PER_WINDOW.name].error is None  # type: ignore[index]
    beat = HeartbeatStore(settings.state).get(PER_WINDOW.name)
    assert beat is not None
    assert beat.state == "stopped"

    admit(settings, reading(9.5))
    run(spark, settings, PER_WINDOW)
    assert [r["readings"] for r in rows(spark, settings, WINDOWS)] == [1]


@pytest.mark.long
def test_b023_a_stop_that_loses_patience_breaks_a_batch_off_and_the_next_run_makes_it_whole(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing.put(f"{FOLDER}/1.json", reading(0), reading(9))
    run(spark, settings, READINGS)
    with monkeypatch.context() as patch:
        stop = QueryHost.stop
        patch.setattr(QueryHost, "stop", lambda self, *_: stop(self, patience=0.1))
        resting = slow_batches(patch, 1.5)
        with running(live(spark, settings, PER_WINDOW)) as thread:
            wait_until(resting.is_set, reason="a batch rests", alive=thread.alive)
    written = row_count(settings.lake(), WINDOWS)

    # Spark closes windows after a batch with data only: a stop before that waits for the next one.
    landing.put(f"{FOLDER}/2.json", reading(9.5))
    run(spark, settings, READINGS, PER_WINDOW)
    assert [r["readings"] for r in rows(spark, settings, WINDOWS)] == [1]
    assert written in (0, 1)


def slow_workers(patch: pytest.MonkeyPatch, times: int) -> list[int]:
    """Let the first batches of an append stream fail as where a Python process came too late."""
    failed: list[int] = []
    write = AppendHost.write

    def late(self: AppendHost, frame: DataFrame, batch: int) -> Any:
        if len(failed) < times:
            failed.append(batch)
            raise RuntimeError("SparkException: Python worker failed to connect back.")
        return write(self, frame, batch)

    patch.setattr(AppendHost, "write", late)
    return failed


@pytest.mark.long
def test_a_query_whose_python_process_comes_too_late_is_started_again_in_the_same_run(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    landing.put(f"{FOLDER}/1.json", reading(0), reading(9))
    with monkeypatch.context() as patch:
        failed = slow_workers(patch, 2)
        done = run(spark, settings, READINGS, PER_WINDOW)
        assert failed == [0, 0]
        assert done[PER_WINDOW.name].error is None
    with monkeypatch.context() as patch:
        failed = slow_workers(patch, 1)
        with running(live(spark, settings, READINGS, PER_WINDOW)) as thread:
            landing.put(f"{FOLDER}/2.json", reading(20))
            wait_until(
                lambda: row_count(settings.lake(), WINDOWS) == 2,
                reason="two windows",
                alive=thread.alive,
            )
        assert len(failed) == 1
    assert [r["readings"] for r in rows(spark, settings, WINDOWS)] == [1, 1]

    landing.put(f"{FOLDER}/3.json", reading(40))
    with monkeypatch.context() as patch:
        slow_workers(patch, 100)
        with pytest.raises(StreamFailed, match="too busy") as ended:
            run(spark, settings, READINGS, PER_WINDOW)
    assert ended.value.stream == PER_WINDOW.name
    beat = HeartbeatStore(settings.state).get(PER_WINDOW.name)
    assert beat is not None
    assert (beat.state, beat.restartable) == ("failed", True)


def poisoned(mended: threading.Event, strategy: RestartStrategy) -> Stream:
    """The same windows by a rule that fails on a reading, until the rule is mended."""

    def build(readings: DataFrame) -> DataFrame:
        if mended.is_set():
            return PER_WINDOW.build(readings)
        broken = F.when(F.col("note") == "poison", F.raise_error(F.lit("met a poisoned reading")))
        return PER_WINDOW.build(readings.withColumn("sensor", F.coalesce(broken, "sensor")))

    return windows(name="test/bad", build=build, writes=renamed("test/bad"), restart=strategy)


def beat_of(settings: Settings, stream: str) -> Heartbeat:
    beat = HeartbeatStore(settings.state).get(stream)
    assert beat is not None
    return beat


def failures_of(settings: Settings, stream: str) -> float:
    beat = HeartbeatStore(settings.state).get(stream)
    return beat.numbers.get(FAILURES, 0) if beat else 0


def test_a_poisoned_stream_is_started_again_until_it_recovers_while_its_neighbour_goes_on(
    spark: SparkSession, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The mended rule takes the state over, as after `rivermark accept`.
    monkeypatch.setattr("rivermark.runtime.checkpoint.identity.check_identity", lambda *_: None)
    mended, lake = threading.Event(), settings.lake()
    bad = poisoned(mended, FixedDelay(delay=timedelta(seconds=0.2)))
    admit(settings, reading(0), reading(9, note="poison"))
    with running(live(spark, settings, PER_WINDOW, bad)) as thread:
        wait_until(
            lambda: failures_of(settings, bad.name) >= 2,
            reason="two failures",
            alive=thread.alive,
        )
        admit(settings, reading(20))
        wait_until(lambda: row_count(lake, WINDOWS) == 2, reason="two windows", alive=thread.alive)
        beat = beat_of(settings, bad.name)
        assert (beat.state, beat.restartable) in (("starting", True), ("running", True))
        assert "poisoned reading" in (beat.error or "")
        assert beat_of(settings, PER_WINDOW.name).error is None
        mended.set()
        wait_until(
            lambda: row_count(lake, bad.tables[0]) == 2, reason="its windows", alive=thread.alive
        )
    assert rows(spark, settings, bad.tables[0]) == rows(spark, settings, WINDOWS)
    assert failures_of(settings, bad.name) == 0


@pytest.mark.long
def test_a_stream_that_is_given_up_stays_failed_while_its_neighbour_goes_on(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    bad = poisoned(threading.Event(), NoRestart())
    thread = Running(live(spark, settings, READINGS, PER_WINDOW, bad))
    landing.put(f"{FOLDER}/1.json", reading(0), reading(9))
    wait_until(
        lambda: row_count(settings.lake(), WINDOWS) == 1, reason="a window", alive=thread.alive
    )
    landing.put(f"{FOLDER}/2.json", reading(9, note="poison"))
    wait_until(
        lambda: failures_of(settings, bad.name) == 1,
        reason="it has failed",
        alive=thread.alive,
    )
    landing.put(f"{FOLDER}/3.json", reading(20))
    wait_until(
        lambda: row_count(settings.lake(), WINDOWS) == 2, reason="a window", alive=thread.alive
    )
    thread.stop.set()
    with pytest.raises(StreamFailed, match="stream 'test/bad' failed") as failed:
        thread.join()
    assert "poisoned reading" in str(failed.value)
    assert failed.value.stream == "test/bad"
    assert failed.value.__cause__ is not None
    beats = HeartbeatStore(settings.state).latest()
    assert {name: beat.state for name, beat in beats.items()} == {
        READINGS.name: "stopped", PER_WINDOW.name: "stopped", "test/bad": "failed",
    }  # fmt: skip
    assert "poisoned reading" in (beats["test/bad"].error or "")
    assert not spark.streams.active
    assert [r["readings"] for r in rows(spark, settings, WINDOWS)] == [1, 2]


def renamed(name: str) -> Table:
    return replace(WINDOWS, name=name)


def test_b019_a_second_run_of_a_stream_ends_at_once_and_names_the_first(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    landing.put(f"{FOLDER}/1.json", *[reading(m) for m in range(10)])
    with running(live(spark, settings, READINGS, run_id="first")) as first:
        wait_until(
            lambda: row_count(settings.lake(), READINGS.admitted) == 10,
            reason="10 rows",
            alive=first.alive,
        )
        with pytest.raises(StreamAlreadyRunning, match="already run by run first"):
            run(spark, settings, READINGS, run_id="second")
        assert first.alive()

    run(spark, settings, READINGS, run_id="third")
    assert row_count(settings.lake(), READINGS.admitted) == 10


@pytest.mark.long
def test_two_runs_that_start_together_write_every_row_once(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    landing.put(f"{FOLDER}/1.json", *[reading(m) for m in range(100)])

    def drain(_stop: threading.Event) -> object:
        return run(spark, settings, READINGS)

    both = [Running(drain), Running(drain)]
    errors: list[StreamAlreadyRunning] = []
    for thread in both:
        try:
            thread.join()
        except StreamAlreadyRunning as error:
            errors.append(error)

    assert len(errors) <= 1
    assert row_count(settings.lake(), READINGS.admitted) == 100
