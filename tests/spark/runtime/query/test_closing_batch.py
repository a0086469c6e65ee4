"""A stream that was stopped before the batch without data that closes its windows."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from rivermark import Stream, Topology
from rivermark.lake.snapshot import row_count
from rivermark.model.errors import StreamFailed
from rivermark.operators.repeats import first_of_each
from rivermark.operators.windows import TumblingWindow, per_window
from rivermark.process.spark import run_process
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.background import running
from tests.spark.helpers.crashes import crash_once, without_closing_batches
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import MINUTE, READINGS, TEN, admit, reading, rows, run, windows
from tests.spark.helpers.stateful_streams import ECHOES, answers, land_feeds
from tests.spark.helpers.windowed_streams import ProcessSessions, windowed

pytestmark = pytest.mark.spark

PER_WINDOW = windows()
WINDOWS = PER_WINDOW.tables[0]


def once_per_window(readings: DataFrame) -> DataFrame:
    """Windows over what another operator with state lets pass."""
    once = readings.transform(first_of_each("note", event_time="at", within=MINUTE))
    counts = {"readings": F.count(F.lit(1)), "total": F.sum("temperature").cast("decimal(19,3)")}
    return per_window(once, TumblingWindow(5 * MINUTE), "at", "sensor", **counts)


def all_kinds(suffix: str) -> list[Stream]:
    """Streams whose results a batch without data brings, under names of their own."""
    several = windows(build=once_per_window, margin=6 * MINUTE)
    named = {"windows": PER_WINDOW, "several": several, "joined": answers()}
    return [
        windowed(f"test/sessions{suffix}"),
        windowed(f"test/process{suffix}", build=run_process(ProcessSessions, buckets=2)),
        *(renamed(stream, f"test/{name}{suffix}") for name, stream in named.items()),
    ]


def renamed(stream: Stream, name: str) -> Stream:
    return replace(stream, name=name, writes=replace(stream.tables[0], name=name))


def results(spark: SparkSession, settings: Settings, streams: list[Stream]) -> list[list[Row]]:
    return [rows(spark, settings, s.tables[0]) for s in streams]


@pytest.mark.long
def test_what_a_stop_left_open_is_published_by_the_next_run_of_every_kind_of_stream(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    land_feeds(landing, seed=5, files=6)
    land_feeds(landing, seed=6, files=1, hour=1)
    run(spark, settings, READINGS, ECHOES)
    whole, stopped = all_kinds("_whole"), all_kinds("_stopped")
    run(spark, settings, *whole)
    expected = results(spark, settings, whole)
    assert all(expected)

    with pytest.MonkeyPatch.context() as patch:
        without_closing_batches(patch)
        run(spark, settings, *stopped)
    assert all(a != b for a, b in zip(results(spark, settings, stopped), expected, strict=True))

    closing = run(spark, settings, *stopped)
    assert results(spark, settings, stopped) == expected
    assert [summary.batches for summary in closing.values()] == [1] * len(stopped)
    again = run(spark, settings, *stopped)
    assert [summary.batches for summary in again.values()] == [0] * len(stopped)

    # And they go on from there as those that were not stopped.
    land_feeds(landing, seed=7, files=2, hour=2)
    run(spark, settings, READINGS, ECHOES)
    run(spark, settings, *whole, *stopped)
    assert results(spark, settings, stopped) == results(spark, settings, whole) != expected


@pytest.fixture
def left_open(spark: SparkSession, settings: Settings) -> None:
    """Two windows that the watermark has passed, and that no batch has closed."""
    admit(settings, reading(0), reading(1), reading(6), reading(11.5))
    with pytest.MonkeyPatch.context() as patch:
        without_closing_batches(patch)
        run(spark, settings, PER_WINDOW)
    assert counts(spark, settings) == []


def counts(spark: SparkSession, settings: Settings) -> list[int]:
    return [r["readings"] for r in rows(spark, settings, WINDOWS, "window_start", "readings")]


@pytest.mark.usefixtures("left_open")
def test_a_bounded_run_publishes_them_and_comes_as_far_as_without_the_stop(
    spark: SparkSession, settings: Settings
) -> None:
    closing = run(spark, settings, PER_WINDOW)[PER_WINDOW.name]
    assert counts(spark, settings) == [2, 1]
    assert (closing.batches, closing.watermark) == (1, TEN + 10.5 * MINUTE)
    assert run(spark, settings, PER_WINDOW)[PER_WINDOW.name].batches == 0


@pytest.mark.usefixtures("left_open")
def test_a_live_run_publishes_them_without_a_new_row(
    spark: SparkSession, settings: Settings
) -> None:
    def live(stop: threading.Event) -> object:
        one = (PER_WINDOW,)
        return run_continuous(spark, settings, Topology(one), one, run_id="live", stop=stop)

    with running(live) as thread:
        wait_until(
            lambda: row_count(settings.lake(), WINDOWS) == 2,
            reason="the windows that were left open are published",
            alive=thread.alive,
        )
    assert counts(spark, settings) == [2, 1]


@pytest.mark.usefixtures("left_open")
@pytest.mark.parametrize("before", [True, False])
def test_a_kill_at_the_commit_of_the_closing_batch_publishes_them_once(
    spark: SparkSession, settings: Settings, before: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        crash_once(patch, WINDOWS.name, before=before)
        with pytest.raises(StreamFailed, match="crashed at"):
            run(spark, settings, PER_WINDOW)
    admit(settings, reading(17))
    run(spark, settings, PER_WINDOW)
    assert counts(spark, settings) == [2, 1, 1]
