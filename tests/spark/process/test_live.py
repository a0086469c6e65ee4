"""A process function that is kept running gives the same as one that is drained."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession

from rivermark import Topology
from rivermark.errors import StreamFailed
from rivermark.lake.stats import row_count
from rivermark.process import Context, KeyedProcess, ValueState
from rivermark.process.spark import run_process
from rivermark.runtime.run import run_continuous
from rivermark.settings import Settings
from tests.spark.engine.sensors import FOLDER, READINGS, reading, run
from tests.spark.landing import Landing
from tests.spark.process.rules import JUMPS, SILENCES, WATCHED, Jump, Reading, watched
from tests.spark.process.test_modes import by_hand, land, written
from tests.spark.waiting import running, until

pytestmark = pytest.mark.spark


def test_a_live_run_gives_the_same_as_a_drained_one(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    def body(stop: threading.Event) -> object:
        streams = (READINGS, WATCHED)
        return run_continuous(spark, settings, Topology(streams), streams, run_id="live", stop=stop)

    with running(body) as thread:
        land(landing, seed=12)
        until(
            lambda: (
                row_count(settings.lake(), READINGS.admitted) > 0
                and row_count(settings.lake(), SILENCES) >= len(by_hand(spark, settings)[1]) > 3
            ),
            "all silences but the last are told",
            thread.alive,
        )
    jumps, silences = by_hand(spark, settings)
    found = written(spark, settings)
    assert found[JUMPS.name] == jumps
    assert found[SILENCES.name] == silences


class Echo(KeyedProcess[Reading, Jump]):
    """Answers each reading half a second of the wall clock later."""

    key = "sensor"
    time = "at"
    last: ValueState[Reading]

    def on_event(self, event: Reading, ctx: Context[Jump]) -> None:
        self.last.value = event
        ctx.timers.processing.register(ctx.processing_time + 500)

    def on_timer(self, at: int, ctx: Context[Jump]) -> None:
        last = self.last.value
        assert last is not None
        self.last.clear()
        ctx.emit(Jump(ctx.key, last.at, last.temperature))


def test_timers_of_the_wall_clock_fire_without_input_where_a_clock_is_declared(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    landing.put(f"{FOLDER}/1.json", reading(0, "a"), reading(1, "b"))
    deaf = watched(Echo, writes=JUMPS)
    with pytest.raises(StreamFailed, match=r"run_process\(\.\.\., clock=True\)"):
        run(spark, settings, READINGS, deaf)

    echo = watched(name="test/echo", build=run_process(Echo, buckets=2, clock=True), writes=JUMPS)

    def body(stop: threading.Event) -> object:
        streams = (READINGS, echo)
        return run_continuous(spark, settings, Topology(streams), streams, run_id="live", stop=stop)

    with running(body) as thread:
        until(lambda: row_count(settings.lake(), JUMPS) == 2, "both are answered", thread.alive)
