"""A stream on Spark whose results go to a topic: each row once, whatever is killed when."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from rivermark import Output, Stream
from rivermark.settings import Settings
from rivermark.sinks import KafkaSink, kafka_writers
from tests.spark.helpers.crashes import CrashError, crash_once, forget_last_commit
from tests.spark.helpers.kafka import Stepped, Topics, committed_messages
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import TEN, admit, reading, rows, run, windows

pytestmark = pytest.mark.spark

DAY_IN_MINUTES = 24 * 60
TABLE = windows().tables[0]
STEPS = (0, 2, 8, 9, 10)
"""Behind the table's commit; then before a transaction is begun, bound to its batch and committed,
and behind that."""


def sent_windows(topics: Topics, topic: str) -> Stream:
    """Windows whose rows also go to a topic, keyed by sensor."""
    sink = KafkaSink(
        topic=topic, brokers=topics.brokers, key=("sensor",), timestamp="window_end", owner=topic
    )
    return windows(writes=(Output(TABLE, sinks=(sink,)),))


class Once:
    """Ends a run at one step of its producers, and never again."""

    def __init__(self, due: int) -> None:
        self.due = due
        self.steps = 0

    def step(self) -> None:
        """Count a step; the one that is due is not taken."""
        self.steps += 1
        if self.steps == self.due:
            raise CrashError(f"crashed at step {self.due}")


def admit_minutes(settings: Settings, first: int, last: int) -> None:
    """A reading of two sensors each minute."""
    admit(settings, *(reading(n, s, n) for n in range(first, last) for s in ("a", "b")))


def by_sensor(topics: Topics, topic: str) -> dict[bytes, list[str]]:
    """The ends of the windows that an independent consumer reads, in its order, by key."""
    ends: dict[bytes, list[str]] = {}
    for message in committed_messages(topics, topic):
        end = json.loads(message.value() or b"")["window_end"]
        ends.setdefault(message.key() or b"", []).append(end)
    return ends


def published(spark: SparkSession, settings: Settings) -> dict[bytes, list[str]]:
    """The same of the table, oldest first."""
    ends: dict[bytes, list[str]] = {}
    for row in rows(spark, settings, TABLE, "window_end", "sensor"):
        ends.setdefault(row.sensor.encode(), []).append(f"{row.window_end:%Y-%m-%dT%H:%M:%SZ}")
    return ends


def killed_at(
    step: int, spark: SparkSession, settings: Settings, stream: Stream, patch: pytest.MonkeyPatch
) -> None:
    """A run that ends at a step of sending a batch, or has fewer steps.

    Step 0 is behind the commit of the table, before anything is sent.
    """
    once = Once(step)
    if step == 0:
        crash_once(patch, TABLE.name)
    else:
        patch.setattr(
            kafka_writers, "Producer", lambda values: Stepped(Producer(values), once.step)
        )
    error = ""
    try:
        run(spark, settings, stream)
    except Exception as raised:
        error = str(raised)
    assert ("crashed" in error) == (once.steps >= step)


@pytest.mark.long
def test_a_stream_that_is_killed_between_its_steps_has_each_row_once_in_table_and_topic(
    spark: SparkSession, settings: Settings, topics: Topics, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topics.make(partitions=2)
    stream = sent_windows(topics, topic)
    for n, step in enumerate(STEPS):
        admit_minutes(settings, 10 * n, 10 * n + 10)
        with monkeypatch.context() as patch:
            killed_at(step, spark, settings, stream, patch)
        run(spark, settings, stream)
        assert by_sensor(topics, topic) == published(spark, settings), step
    assert sum(map(len, published(spark, settings).values())) >= 2 * len(STEPS)

    # The day is over; what is sent of it the checkpoint does not know.
    admit(settings, reading(DAY_IN_MINUTES, "c"))
    run(spark, settings, stream)
    forget_last_commit(settings, stream)
    run(spark, settings, stream)
    assert by_sensor(topics, topic) == published(spark, settings)
    before = committed_messages(topics, topic)
    fewer = replace(stream, build=lambda frame: stream.build(frame.where("sensor = 'a'")))
    done = recompute_days(spark, settings, fewer, TEN.date())
    outcome = done.tables[TABLE.name]
    assert outcome.difference.removed > 0
    assert outcome.sinks[f"Kafka topic {topic} of {topics.brokers}"] == "skips"
    assert len(committed_messages(topics, topic)) == len(before)
