"""Landed events sent to topics: the same lines by another way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from rivermark import Contract
from rivermark.connect.kafka import require_kafka_client
from rivermark.sources import KafkaSource
from simulator.taxi.wire import landed_lines

if TYPE_CHECKING:
    from confluent_kafka import TopicPartition

PARTITIONS: Final = 4
PATIENCE_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Sent:
    """What lies in a topic: of how many files, how many messages; and how many files are new."""

    topic: str
    files: int
    rows: int
    new_files: int


def send_landed(folder: Path, source: KafkaSource, contract: Contract) -> Sent:
    """Send the lines of a folder's files to a topic, each once.

    Files come in the order in which they landed, all that are new in one transaction, which also
    holds how many were sent: as the offset of a consumer group that has the topic's name. A
    message has the first key of the contract as its key and the event's time as its timestamp.
    """
    require_kafka_client(f"sending to {source.name}")
    from confluent_kafka import Consumer, Producer

    settings = source.client_settings()
    make_topic(source.name, settings)
    consumer = Consumer({**settings, "group.id": source.name, "enable.auto.commit": "false"})
    own = {"transactional.id": source.name, "linger.ms": "5", "log_level": "0"}
    producer = Producer({**settings, **own})
    producer.init_transactions(PATIENCE_SECONDS)
    files = [*landed_lines(folder)]
    [held] = consumer.committed([_place(source, -1)], PATIENCE_SECONDS)
    done = max(held.offset, 0)
    producer.begin_transaction()
    for line in (line for lines in files[done:] for line in lines):
        row: dict[str, Any] = msgspec.json.decode(line)
        at = datetime.fromisoformat(row[contract.event_time])
        producer.produce(
            source.name,
            line,
            key=str(row[contract.keys[0]]).encode(),
            timestamp=int(at.timestamp() * 1000),
        )
        producer.poll(0)
    producer.send_offsets_to_transaction(
        [_place(source, len(files))], consumer.consumer_group_metadata(), PATIENCE_SECONDS
    )
    producer.commit_transaction(PATIENCE_SECONDS)
    consumer.close()
    return Sent(source.name, len(files), sum(map(len, files)), len(files) - done)


def _place(source: KafkaSource, offset: int) -> TopicPartition:
    from confluent_kafka import TopicPartition

    return TopicPartition(source.name, 0, offset)


def make_topic(name: str, settings: Mapping[str, str]) -> None:
    """Make a topic at the brokers of a client's settings, unless it is there."""
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    admin = AdminClient({"log_level": "0", **settings})
    [made] = admin.create_topics([NewTopic(name, PARTITIONS, 1)]).values()
    try:
        made.result(PATIENCE_SECONDS)
    except KafkaException as error:
        if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
