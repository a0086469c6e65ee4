"""What a topic and a database hold of the published results, as those who read them see it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from assets.taxi.ingest import BROKERS
from assets.taxi.serving import ACTIVITY_NOW, DATABASE, TOPIC
from rivermark.connect.kafka import kafka_settings, require_kafka_client
from simulator.taxi.topics import PATIENCE_SECONDS, make_topic

SHOWN: Final = 3
BUSIEST: Final = """
SELECT zone, window_end, starts, ends, count(*) OVER () AS zones
FROM zone_activity_now ORDER BY starts + ends DESC, zone LIMIT 3
"""


def make_winners_topic() -> None:
    """Make the topic of the winners, where the environment names one: a sink makes none."""
    if os.environ.get(TOPIC) and os.environ.get(BROKERS):
        require_kafka_client("making the topic of the winners")
        make_topic(os.environ[TOPIC], _settings())


def received() -> list[str]:
    """What arrived where the environment names a topic or a database, in sentences."""
    return [*_of_topic(), *_of_database()]


def _of_topic() -> Iterator[str]:
    if not os.environ.get(TOPIC) or not os.environ.get(BROKERS):
        return
    topic = os.environ[TOPIC]
    messages = sorted(committed(topic), key=lambda row: str(row["window_end"]))
    yield f"messages in the topic {topic} of {os.environ[BROKERS]}: {len(messages)}, the last"
    for row in messages[-SHOWN:]:
        yield f"  {row['window_end']} driver {row['driver_id']}: {row['tips']} USD of tips"


def _of_database() -> Iterator[str]:
    if not os.environ.get(DATABASE):
        return
    import psycopg

    with psycopg.connect(os.environ[DATABASE]) as connection:
        rows = connection.execute(BUSIEST).fetchall()
    zones = rows[0][-1] if rows else 0
    yield f"zones in the table {ACTIVITY_NOW} of PostgreSQL: {zones}, the busiest"
    for zone, end, starts, ends, _ in rows:
        hour = f"quarter of an hour to {end:%Y-%m-%d %H:%M}"
        yield f"  zone {zone}, {hour}: {starts} trips began, {ends} ended"


def committed(topic: str) -> Iterator[dict[str, Any]]:
    """The messages of a topic that were committed, of all partitions."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    own = {"group.id": f"{topic}.demo", "enable.auto.commit": "false", "log_level": "0"}
    reading = {"isolation.level": "read_committed", "enable.partition.eof": "true"}
    consumer = Consumer({**_settings(), **own, **reading})
    try:
        partitions = consumer.list_topics(topic, PATIENCE_SECONDS).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in partitions])
        ended = 0
        while ended < len(partitions):
            message = consumer.poll(PATIENCE_SECONDS)
            if message is None:
                return
            if message.error() is not None:
                ended += 1
            else:
                yield msgspec.json.decode(message.value() or b"{}")
    finally:
        consumer.close()


def _settings() -> dict[str, str]:
    return kafka_settings(f"${BROKERS}", {})
