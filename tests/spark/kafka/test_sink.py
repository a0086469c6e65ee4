"""A topic of a real broker as a sink: each batch once, whatever is killed when. Needs no Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import Consumer, Message

from rivermark import KafkaSink, RivermarkError
from rivermark.lake.lake import Lake
from rivermark.model.sink import SinkContext
from tests.spark.helpers.kafka import Topics
from tests.unit.sinks.conftest import NOON, Killed, Killer, context, fares, two_days


def messages(topics: Topics, topic: str) -> list[Message]:
    """All committed messages of a topic, as an independent consumer reads them."""
    topics.settle(topic)
    consumer = Consumer(
        {
            "bootstrap.servers": topics.brokers,
            "group.id": "reader",
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": "20",
        }
    )
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([confluent_kafka.TopicPartition(topic, n, 0) for n in partitions])
    read, ended = [], 0
    while ended < len(partitions):
        for message in consumer.consume(1000, timeout=0.05):
            if message.error() is None:
                read.append(message)
            else:
                ended += 1
    consumer.close()
    return read


def rides(topics: Topics, topic: str) -> list[int]:
    """The rides of a topic's messages."""
    return sorted(json.loads(m.value() or b"")["ride"] for m in messages(topics, topic))


class Stepped:
    """A producer each of whose calls is a step before which a test may kill."""

    def __init__(self, producer: Any, killer: Killer) -> None:
        self._producer = producer
        self._killer = killer

    def __getattr__(self, name: str) -> Any:
        if name != "poll":
            self._killer.step()
        call = getattr(self._producer, name)
        if name != "commit_transaction":
            return call

        def committed(*values: Any) -> None:
            call(*values)
            self._killer.step()

        return committed


@pytest.fixture
def killer() -> Iterator[Killer]:
    made = Killer()
    producer = confluent_kafka.Producer
    made.patch.setattr(
        confluent_kafka, "Producer", lambda settings: Stepped(producer(settings), made)
    )
    yield made
    made.patch.undo()


@pytest.fixture
def where(tmp_path: Path) -> SinkContext:
    return context(Lake(str(tmp_path)))


def test_a_batch_is_sent_once_with_key_timestamp_and_identity(
    topics: Topics, where: SinkContext
) -> None:
    topic = topics.make(partitions=3)
    sink = KafkaSink(topic=topic, brokers=topics.brokers, timestamp="at")
    writer, batch = sink.open(where), where.origin.batch(0)
    assert writer.last() is None
    assert writer.write(two_days(), batch) == 2
    assert writer.last() == batch
    writer.write(two_days(), batch)
    writer.close()
    after = sink.open(where)
    assert after.last() == batch
    after.write(two_days(), batch)
    after.write(fares((3, 3.0)), where.origin.batch(1))
    after.close()

    sent = {m.key(): m for m in messages(topics, topic)}
    assert sent.keys() == {b"1", b"2", b"3"}
    assert len(messages(topics, topic)) == 3
    assert json.loads(sent[b"1"].value() or b"") == {
        "ride": 1,
        "at": "2024-03-01T12:00:00Z",
        "fare": 1.0,
        "gone": False,
    }
    moment = NOON + timedelta(days=1)
    assert sent[b"2"].timestamp()[1] == int(moment.timestamp() * 1000)
    assert dict(sent[b"3"].headers() or ()) == {
        "stream": b"test/fares",
        "generation": b"0",
        "batch": b"1",
    }
    later = context(Lake(where.root), generation=1)
    reset = sink.open(later)
    assert reset.last() is None
    reset.close()


@pytest.mark.long
def test_a_kill_between_any_two_steps_leaves_each_row_once(
    topics: Topics, where: SinkContext, killer: Killer
) -> None:
    due = 0
    while True:
        due += 1
        topic = topics.make()
        sink = KafkaSink(topic=topic, brokers=topics.brokers)
        first = sink.open(where)
        first.write(fares((1, 1.0)), where.origin.batch(0))
        first.close()
        killer.due, killer.steps = due, 0
        try:
            sink.open(where).write(fares((2, 2.0), (3, 3.0)), where.origin.batch(1))
        except Killed:
            pass
        else:
            break
        killer.due = None
        for _ in range(2):
            again = sink.open(where)
            again.write(fares((2, 2.0), (3, 3.0)), where.origin.batch(1))
            again.close()
        assert rides(topics, topic) == [1, 2, 3], f"killed before step {due}"
    assert due > 5


def test_a_writer_whose_stream_was_taken_over_can_write_no_more(
    topics: Topics, where: SinkContext
) -> None:
    topic = topics.make()
    sink = KafkaSink(topic=topic, brokers=topics.brokers)
    paused, successor = sink.open(where), sink.open(where)
    assert paused.last() is None
    successor.write(fares((1, 1.0)), where.origin.batch(0))
    with pytest.raises(RivermarkError, match=f"cannot write its batch at Kafka topic '{topic}'"):
        paused.write(fares((1, 1.0)), where.origin.batch(0))

    assert rides(topics, topic) == [1]


def test_a_topic_that_is_not_there_is_named_at_the_start(
    topics: Topics, where: SinkContext
) -> None:
    with pytest.raises(RivermarkError, match="there is no topic 'nowhere'"):
        KafkaSink(topic="nowhere", brokers=topics.brokers).open(where).last()
