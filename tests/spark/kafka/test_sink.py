"""A topic of a real broker as a sink: each batch once, whatever is killed when. Needs no Spark."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Literal

import confluent_kafka
import pyarrow as pa
import pytest

from rivermark import RivermarkError, Table
from rivermark.lake.lake import Lake
from rivermark.lake.system_tables import rows_of
from rivermark.model.sink import SinkContext
from rivermark.sinks import KafkaSink, kafka_writers
from rivermark.sinks.kafka_options import DEDUPLICATION_KEY
from rivermark.sinks.output import OutputWriter
from tests.kills import Killer
from tests.sink_contract import NewTarget, SinkContract, Target
from tests.spark.helpers.kafka import Stepped, Topics, committed_messages
from tests.unit.sinks.conftest import NOON, context, fares, of_json, two_days
from tests.unit.sinks.target_world import World
from tests.unit.sinks.test_extremes import EVERY, check_objects, written


def rides(topics: Topics, topic: str) -> list[int]:
    """The rides of a topic's messages."""
    return sorted(json.loads(m.value() or b"")["ride"] for m in committed_messages(topics, topic))


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

    sent = {m.key(): m for m in committed_messages(topics, topic)}
    assert sent.keys() == {b"1", b"2", b"3"}
    assert len(committed_messages(topics, topic)) == 3
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
@pytest.mark.parametrize("guarantee", ["exactly once", "at least once"])
class TestContract(SinkContract):
    """A consumer of what is committed, which drops what comes again by its deduplication key."""

    @pytest.fixture
    def new_target(
        self,
        topics: Topics,
        guarantee: Literal["exactly once", "at least once"],
        new_context: Callable[[], SinkContext],
        killer: Killer,
    ) -> NewTarget:
        producer = confluent_kafka.Producer
        killer.patch.setattr(
            kafka_writers, "Producer", lambda settings: Stepped(producer(settings), killer.step)
        )

        def make() -> Target:
            topic = topics.make()
            sink = KafkaSink(topic=topic, brokers=topics.brokers, guarantee=guarantee)
            rows = partial(once, topics, topic)
            return Target(sink, new_context(), rows, waits=guarantee == "exactly once")

        return make


def once(topics: Topics, topic: str) -> pa.Table:
    """The fares of a topic, without those that came again with their key."""
    values = {
        dict(m.headers() or ()).get(DEDUPLICATION_KEY, m.offset()): m.value() or b""
        for m in committed_messages(topics, topic)
    }
    return of_json(values.values())


def test_a_writer_whose_stream_was_taken_over_can_write_no_more(
    topics: Topics, where: SinkContext
) -> None:
    topic = topics.make()
    sink = KafkaSink(topic=topic, brokers=topics.brokers)
    paused, successor = sink.open(where), sink.open(where)
    assert paused.last() is None
    successor.write(fares((1, 1.0)), where.origin.batch(0))
    refused = f"cannot write its batch at Kafka topic '{topic}'.*another run of this stream"
    with pytest.raises(RivermarkError, match=refused):
        paused.write(fares((1, 1.0)), where.origin.batch(0))

    assert rides(topics, topic) == [1]


def test_a_run_that_is_shut_out_within_its_transaction_leaves_nothing_of_it(
    topics: Topics, where: SinkContext
) -> None:
    """As on two hosts: one sends, the other takes the stream over, the first one goes on."""
    topic = topics.make()
    sink = KafkaSink(topic=topic, brokers=topics.brokers)
    second = sink.open(where)

    def take_over() -> None:
        second.write(fares((1, 1.0), (2, 2.0)), where.origin.batch(0))

    # Checked when all is sent and nothing committed.
    first = sink.open(replace(where, origin=replace(where.origin, check=take_over)))
    with pytest.raises(RivermarkError, match="another run of this stream has begun"):
        first.write(fares((1, 1.0), (2, 2.0)), where.origin.batch(0))
    assert rides(topics, topic) == [1, 2]


@pytest.mark.long
def test_a_topic_that_is_deleted_between_two_batches_is_named_and_goes_on_once_it_is_made_again(
    topics: Topics, where: SinkContext
) -> None:
    topic = topics.make()
    sink = KafkaSink(topic=topic, brokers=topics.brokers)
    writer = sink.open(where)
    writer.write(fares((1, 1.0)), where.origin.batch(0))
    topics.delete(topic)
    for again in (writer, sink.open(where)):
        with pytest.raises(RivermarkError, match=rf"'{topic}'.*(Unknown|make it, with the part)"):
            again.write(fares((2, 2.0)), where.origin.batch(1))
    topics.make(topic, 1, **{"max.message.bytes": "5000"})
    # So many that the first are refused while others are still handed over.
    with pytest.raises(RivermarkError, match=r"too large.*\"batch\.size\""):
        writer.write(fares(*((n, 2.0) for n in range(50_000))), where.origin.batch(1))
    many = fares(*((n, 2.0) for n in range(1_000)))
    small = replace(sink, settings={"batch.size": "3000"}).open(where)
    small.write(many, where.origin.batch(1))
    assert rides(topics, topic) == [*range(1_000)]


def test_a_topic_that_is_not_there_is_named_at_the_start(
    topics: Topics, where: SinkContext
) -> None:
    with pytest.raises(RivermarkError, match="there is no topic 'nowhere'"):
        KafkaSink(topic="nowhere", brokers=topics.brokers).open(where).last()


def test_at_least_once_a_message_that_comes_again_has_the_deduplication_key_of_before(
    topics: Topics, where: SinkContext
) -> None:
    topic = topics.make(partitions=2)
    sink = KafkaSink(topic=topic, brokers=topics.brokers, guarantee="at least once")
    same = fares((1, 1.0), (1, 1.0), (2, 2.0), (3, 3.0))
    first = sink.open(where)
    for _ in range(2):
        assert first.write(same, where.origin.batch(0)) in (4, 0)
    first.close()
    # A run that was killed before its checkpoint knew of the batch: in another order, at that.
    again = sink.open(where)
    again.write(same.take([3, 2, 1, 0]), where.origin.batch(0))
    again.write(fares((1, 1.0)), where.origin.batch(1))
    again.close()

    sent: dict[object, list[int]] = {}
    for message in committed_messages(topics, topic):
        key = dict(message.headers() or ())[DEDUPLICATION_KEY]
        sent.setdefault(key, []).append(json.loads(message.value() or b"")["ride"])
    assert sorted(sent.values()) == [[1], [1, 1], [1, 1], [2, 2], [3, 3]]
    assert "at least once, sent again after a kill, with the same header" in sink.described()
    gone = KafkaSink(topic="nowhere", brokers=topics.brokers, guarantee="at least once")
    with pytest.raises(RivermarkError, match="there is no topic 'nowhere'"):
        gone.open(where).last()


def test_rows_of_a_key_keep_their_order_and_a_partition_that_stays_empty_is_named(
    topics: Topics, where: SinkContext, caplog: pytest.LogCaptureFixture
) -> None:
    topic = topics.make(partitions=3)
    sink = KafkaSink(topic=topic, brokers=topics.brokers, timestamp="at")
    writer = sink.open(where)
    for batch in range(3):
        rows = [(ride, float(40 * batch + n)) for n in range(40) for ride in (7, 8)]
        writer.write(fares(*rows), where.origin.batch(batch))
    writer.close()

    order: dict[int, list[float]] = {7: [], 8: []}
    partitions: dict[int, set[int | None]] = {7: set(), 8: set()}
    for message in committed_messages(topics, topic):
        row = json.loads(message.value() or b"")
        order[row["ride"]].append(row["fare"])
        partitions[row["ride"]].add(message.partition())
    assert order == {ride: [float(n) for n in range(120)] for ride in (7, 8)}
    assert [len(own) for own in partitions.values()] == [1, 1]
    with caplog.at_level(logging.WARNING, "rivermark"):
        sink.open(where).last()
    [warning] = caplog.messages
    assert f"of topic '{topic}' is empty" in warning


def test_a_transaction_that_may_take_longer_than_the_brokers_allow_is_refused_at_the_start(
    topics: Topics, where: SinkContext
) -> None:
    hours = {"transaction.timeout.ms": "7200000"}
    sink = KafkaSink(topic=topics.make(), brokers=topics.brokers, settings=hours)
    with pytest.raises(RivermarkError, match=r"cannot begin .* `transaction\.max\.timeout\.ms`"):
        sink.open(where).last()


def test_a_row_that_is_too_large_for_the_topic_is_named_and_its_batch_goes_once_it_is_allowed(
    topics: Topics, tmp_path: Path
) -> None:
    table = Table(
        name="test/fares", schema="ride long, note string", description="Notes.", keys=("ride",)
    )
    where = context(Lake(str(tmp_path)), table)
    batch = rows_of(table, [{"ride": 1, "note": "short"}, {"ride": 2, "note": "x" * 1_500_000}])
    allowed = {"max.message.bytes": "4000000"}
    topic = topics.make("too-large", 1, **allowed)
    sink = KafkaSink(topic=topic, brokers=topics.brokers)
    refusing = sink.open(where)
    for _ in range(2):
        refusal = r"the row with key 2 \(1,500,0\d\d bytes\): .*too large; .*message\.max\.bytes"
        with pytest.raises(RivermarkError, match=refusal):
            refusing.write(batch, where.origin.batch(0))
        # Not open until its time is over: who reads what is committed would wait for it.
        assert rides(topics, topic) == []
    refusing.close()
    assert rides(topics, topic) == []
    larger = replace(sink, settings={"message.max.bytes": "4000000"}).open(where)
    larger.write(batch, where.origin.batch(0))
    larger.close()
    assert rides(topics, topic) == [1, 2]


@pytest.mark.parametrize("guarantee", ["exactly once", "at least once"])
def test_a_row_that_the_broker_refuses_is_named_and_its_batch_goes_once_it_is_allowed(
    topics: Topics, where: SinkContext, guarantee: Literal["exactly once", "at least once"]
) -> None:
    topic = topics.make()
    sink = KafkaSink(topic=topic, brokers=topics.brokers, timestamp="at", guarantee=guarantee)
    ahead = datetime.now(UTC) + timedelta(days=2)
    batch = pa.concat_tables([fares((1, 1.0)), fares((2, math.nan), at=ahead)])
    refusal = r"the row with key 2 \(\d+ bytes\): .*imestamp.*`message\.timestamp\.after\.max\.ms`"
    with pytest.raises(RivermarkError, match=refusal):
        sink.open(where).write(batch, where.origin.batch(0))
    sent = rides(topics, topic)
    assert sent == [] if guarantee == "exactly once" else sent in ([], [1])
    topics.configure(topic, **{"message.timestamp.after.max.ms": str(2**63 - 1)})
    sink.open(where).write(batch, where.origin.batch(0))
    assert sorted({*rides(topics, topic)}) == [1, 2]
    rows = [json.loads(m.value() or b"") for m in committed_messages(topics, topic)]
    assert [row["fare"] for row in rows if row["ride"] == 2] == ["NaN"]
    stamps = {m.key(): m.timestamp()[1] for m in committed_messages(topics, topic)}
    assert stamps[b"2"] == (ahead - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def test_r10_a_topic_that_is_gone_is_told_by_the_check(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make()
    world = World(tmp_path, KafkaSink(topic=topic, brokers=topics.brokers))
    world.write(fares((1, 1.0)), fares((2, 2.0)))
    assert world.check().passed
    assert "holds batch 1" in world.check().observed
    with closing(OutputWriter(world.lake, world.output, world.origin)) as writer:
        # To ask it shuts out nobody.
        assert world.check().passed
        writer.write(fares((3, 3.0)), 2, {})

    topics.delete(topic)
    gone = world.check()
    assert (gone.passed, gone.severity) == (False, "warning")
    assert f"there is no topic '{topic}'" in gone.observed


def test_messages_hold_every_extreme(topics: Topics, tmp_path: Path) -> None:
    topic = topics.make()
    where = context(Lake(str(tmp_path)), EVERY)
    # One text has a million characters, which is about what a broker takes.
    topics.configure(topic, **{"max.message.bytes": "4000000"})
    sink = KafkaSink(topic=topic, brokers=topics.brokers, settings={"message.max.bytes": "4000000"})
    written(sink, where)
    check_objects([message.value() or b"" for message in committed_messages(topics, topic)])
