"""A real broker for tests, and topics on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka import admin as client
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType

from rivermark import Contract, Field, Ingest
from rivermark.ingest.plan import BatchPlanner
from rivermark.ingest.source.kafka.cluster import Cluster
from rivermark.ingest.source.kafka.position import Range
from rivermark.sources import KafkaSource
from rivermark.testing import wait_until
from tests.spark.helpers.source_contract import EVENT, Deployment, event

NEW: Any = client
"""Not all that it exports is in its list of names."""


class Topics:
    """Makes, fills and empties topics of a broker."""

    def __init__(self, brokers: str) -> None:
        self.brokers = brokers
        self.admin = NEW.AdminClient({"bootstrap.servers": brokers, "log_level": 0})
        self.producer = self._producer()

    def _producer(self) -> Producer:
        # When the broker has stopped, it has nothing to say about that.
        return Producer({"bootstrap.servers": self.brokers, "linger.ms": 0, "log_level": 0})

    def make(self, name: str = "", partitions: int = 1, **config: str) -> str:
        """Make a topic; without a name, one that no other test has, and with one made anew."""
        topic = name or f"t-{uuid4().hex[:8]}"
        if name and self._has(name):
            self.delete(name)
        done(self.admin.create_topics([NEW.NewTopic(topic, partitions, 1, config=config)]))
        return topic

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions, so many in all."""
        done(self.admin.create_partitions([NEW.NewPartitions(topic, partitions)]))
        # One that has written to the topic knows no others for minutes.
        self.producer = self._producer()

    def configure(self, topic: str, **config: str) -> None:
        """Change settings of a topic."""
        entries = [
            NEW.ConfigEntry(name, value, incremental_operation=NEW.AlterConfigOpType.SET)
            for name, value in config.items()
        ]
        resource = NEW.ConfigResource("topic", topic, incremental_configs=entries)
        done(self.admin.incremental_alter_configs([resource]))

    def delete(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        done(self.admin.delete_topics([topic], operation_timeout=10))
        wait_until(lambda: not self._has(topic), reason=f"topic {topic} is gone")
        # As in `grow`: the next of that name may have other partitions.
        self.producer = self._producer()

    def _has(self, topic: str) -> bool:
        return topic in self.admin.list_topics(timeout=10).topics

    def cut(self, topic: str, partition: int, before: int) -> None:
        """Delete the messages before an offset, as retention does."""
        done(self.admin.delete_records([TopicPartition(topic, partition, before)]))

    def commit(self, topic: str, group: str, offset: int) -> None:
        """Commit an offset of the first partition, as a consumer of a group does."""
        consumer = Consumer({"bootstrap.servers": self.brokers, "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        consumer.close()

    def settle(self, topic: str) -> None:
        """Wait until no transaction is open: a commit returns before all partitions hold it."""
        settings = {"bootstrap.servers": self.brokers}
        clusters = [Cluster(settings, f"read_{kind}") for kind in ("committed", "uncommitted")]
        partitions = clusters[0].topics([topic])[topic].partitions
        wait_until(
            lambda: clusters[0].ends(partitions) == clusters[1].ends(partitions),
            reason="transactions have ended",
        )

    def send(self, topic: str, values: Iterable[Any], **options: Any) -> None:
        """Send values: bytes as they are, None as a tombstone, all others as JSON."""
        for value in values:
            is_raw = value is None or isinstance(value, bytes)
            sent = value if is_raw else json.dumps(value, default=str).encode()
            self.producer.produce(topic, sent, **options)
        self.producer.flush()


def committed_messages(topics: Topics, topic: str) -> list[Message]:
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
    consumer.assign([TopicPartition(topic, n, 0) for n in partitions])
    read, ended = [], 0
    while ended < len(partitions):
        for message in consumer.consume(1000, timeout=0.05):
            if message.error() is None:
                read.append(message)
            else:
                ended += 1
    consumer.close()
    return read


class Stepped:
    """A producer each of whose calls is a step, before which a test may kill."""

    def __init__(self, producer: Producer, step: Callable[[], None]) -> None:
        self._producer = producer
        self._step = step

    def __getattr__(self, name: str) -> Any:
        if name != "poll":
            self._step()
        call = getattr(self._producer, name)
        if name != "commit_transaction":
            return call

        def committed(*values: Any) -> None:
            call(*values)
            self._step()

        return committed


def done(futures: Mapping[Any, Any]) -> None:
    """Wait for what an admin client was asked for."""
    for future in futures.values():
        future.result(30)


MESSAGE = Contract(
    fields=(
        *EVENT.fields,
        Field("key", StringType(), ("_key",)),
        Field("trace", StringType(), ("_header.trace",)),
        Field("place", LongType(), ("_offset",)),
    ),
    event_time="at",
    max_ahead=EVENT.max_ahead,
)


def millis(number: int) -> int:
    """The timestamp of a message with event `number`."""
    return int(event(number)["at"].timestamp() * 1000)


def deploy(
    spark: SparkSession | None, root: Path, topics: Topics, topic: str = "", **options: Any
) -> Deployment:
    """An ingest of a topic, with nothing read yet."""
    ingest = Ingest(
        name="test/messages",
        source=KafkaSource(brokers=topics.brokers, topics=topic or (), **options),
        contract=MESSAGE,
        lateness=timedelta(seconds=1),
        description="Messages.",
        group="test",
    )
    return Deployment(cast(SparkSession, spark), root, ingest)


def source_of(deployment: Deployment) -> KafkaSource:
    """The source of a deployment's ingest."""
    assert isinstance(deployment.ingest.source, KafkaSource)
    return deployment.ingest.source


def planned(deployment: Deployment) -> dict[str, list[tuple[int, int]]]:
    """The ranges of the plan, by topic and partition, in the order of their offsets."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for read in sorted(map(Range.of_split, deployment.plan()), key=lambda r: (r.round, r.start)):
        ranges.setdefault(str(read.of), []).append((read.start, read.end))
    return ranges


def poll(deployment: Deployment) -> dict[str, list[tuple[int, int]]]:
    """Plan what is there, without reading it."""
    planner = BatchPlanner(deployment.lake, "", deployment.ingest, "run")
    planner.poll()
    planner.source.close()
    return planned(deployment)
