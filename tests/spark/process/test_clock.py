"""Timers of the wall clock in a live run: they fire without input, and after a restart."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

import msgspec
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark import Stream, Table, Topology
from rivermark.lake.snapshot import row_count
from rivermark.monitor.process_metrics import metrics_of_streams
from rivermark.process import Context, KeyedProcess, ValueState
from rivermark.process.spark import run_process
from rivermark.runtime.checkpoint.state_reader import state_of_stream
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.background import running
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, reading, rows

pytestmark = pytest.mark.spark

PATIENCE: Final = {"patient": 8_000}
"""Milliseconds of the wall clock after a reading that a sensor is answered; others: two seconds."""


class Reading(msgspec.Struct, frozen=True):
    """What the rule reads of a reading."""

    sensor: str
    at: int


class Answered(msgspec.Struct, frozen=True):
    """A reading, when its answer is due and when it was given; 0 while it is promised."""

    sensor: str
    at: int
    due: int
    given: int


class Answers(KeyedProcess[Reading, Answered]):
    """Promises each reading an answer, and gives it by the wall clock."""

    key = "sensor"
    time = "at"

    promised: ValueState[Answered]

    def on_event(self, event: Reading, ctx: Context[Answered]) -> None:
        due = ctx.processing_time + PATIENCE.get(event.sensor, 2_000)
        self.promised.value = Answered(event.sensor, event.at, due, 0)
        ctx.emit(self.promised.value)
        ctx.timers.processing.register(due)
        ctx.count("promised")

    def on_timer(self, at: int, ctx: Context[Answered]) -> None:
        promised = self.promised.value
        assert promised is not None
        ctx.emit(Answered(ctx.key, promised.at, at, ctx.processing_time))
        self.promised.clear()


ANSWERS: Final = Table(
    name="test/answers",
    schema=StructType(
        [
            StructField("sensor", StringType()),
            StructField("at", TimestampType()),
            StructField("due", LongType()),
            StructField("given", LongType()),
        ]
    ),
    description="Answers to readings.",
    event_time="at",
    keys=("sensor", "at", "given"),
)
ANSWERED: Final = Stream(
    name="test/answers",
    reads=(READINGS,),
    build=run_process(Answers, buckets=4, clock=True),
    writes=ANSWERS,
    description="Answers to readings.",
    group="test",
)
STREAMS: Final = (READINGS, ANSWERED)


def rows_in(settings: Settings) -> int:
    """Rows that the stream says it took; that time passes is none."""
    batches = DeltaTable(settings.lake().path(STREAM_PROGRESS)).to_pyarrow_table().to_pylist()
    return sum(batch["rows_in"] for batch in batches if batch["stream"] == ANSWERED.name)


@pytest.mark.long
def test_timers_fire_without_input_and_those_past_due_after_a_restart(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    def live(stop: threading.Event) -> object:
        return run_continuous(spark, settings, Topology(STREAMS), STREAMS, run_id="live", stop=stop)

    def told(count: int) -> Callable[[], bool]:
        return lambda: row_count(settings.lake(), ANSWERS) >= count

    landing.put(f"{FOLDER}/1.json", reading(0, "s1"), reading(1, "s2"))
    with running(live) as thread:
        wait_until(
            told(4),
            reason="both are promised and answered, and nothing else came",
            alive=thread.alive,
        )
        landing.put(f"{FOLDER}/2.json", reading(1.5, "patient"))
        wait_until(told(5), reason="a third one is promised", alive=thread.alive)
    # No file comes any more.
    with running(live) as thread:
        wait_until(
            told(6), reason="its timer of before the restart fires after it", alive=thread.alive
        )

    found = rows(spark, settings, ANSWERS, "sensor", "due", "given")
    answers = [row for row in found if row["given"]]
    assert [row["sensor"] for row in answers] == ["patient", "s1", "s2"]
    assert all(row["due"] <= row["given"] for row in answers)
    view = state_of_stream(spark, settings.lake(), ANSWERED, None, 10)
    assert (view.keys, sum(each.timers for each in view.buckets)) == ([], 0)
    assert metrics_of_streams(settings)["test/answers"] == {"promised": 3}
    assert rows_in(settings) == 3
