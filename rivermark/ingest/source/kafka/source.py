"""Topics of Kafka as a source: a split is a range of offsets of one partition."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from rivermark.connect.kafka import require_kafka_client
from rivermark.ingest.source.kafka.options import KafkaOptions
from rivermark.ingest.source.kafka.position import Partition
from rivermark.model.declared import declared
from rivermark.model.source import SourceReader
from rivermark.model.source_abilities import MessageSource


@declared("source", lambda values: values.get("pattern") or values.get("topics"))
@dataclass(frozen=True, kw_only=True)
class KafkaSource(KafkaOptions, MessageSource):
    """Messages of one topic, of several, or of all whose names fit `pattern`, a regular expression.

    `format` says what values are: `json` is an object; `text` (UTF-8) comes in a column `text`;
    `bytes` in a column `bytes`, as base64; `Avro(...)` and `Protobuf(...)` are records whose fields
    are columns. Beside its values each message has `_topic`, `_partition`, `_offset`, `_timestamp`
    (UTC), `_key`, and each header as `_header.<name>`; fields take them by their `names`. In the
    raw table `_row` is the offset.

    `key_format` is the format of keys. `text` is UTF-8 without zero bytes; other keys are in
    `_key_bytes`, as base64, as are all keys with `bytes`. `int` and `long` are as Java's
    serializers write them, `uuid` has 16 bytes, and each field of an `Avro(...)` or `Protobuf(...)`
    record is `_key.<name>`. A message whose key does not have the format is quarantined.

    `start` only applies to the first start: `earliest`, `latest`, a moment (the first messages with
    that timestamp or a later one), offsets by topic and partition, or those that a `ConsumerGroup`
    has committed. A partition or topic that appears later, or that the offsets leave out, is read
    from its first message. Messages of transactions that are open or were aborted are not read,
    unless `isolation` says so.

    A planned batch holds at most `max_messages` or, without that limit, about as many bytes as one
    of files. From several partitions it takes messages of the same span of timestamps. Messages
    without a value (tombstones) are counted but make no rows; with `tombstones="rows"` they are
    records with `_tombstone` and without values.

    `settings` are those of librdkafka, such as `security.protocol`. They and `brokers` refer to
    environment variables as `$NAME`, so that a declaration contains no secret.

    Raises:
        DeclarationError: not either of `topics` and `pattern`, `start` without a time zone, or
            `max_messages` below 1.
    """

    kind: ClassVar[str] = "kafka"
    unit: ClassVar[str] = "range"
    skipped: ClassVar[str | None] = "tombstones"
    together: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The topics, or the pattern."""
        return self.pattern or ", ".join(self.names)

    @property
    def asset(self) -> tuple[str, ...]:
        """The topics, below `kafka`."""
        return ("kafka", re.sub(r"\W+", "_", self.name).strip("_"))

    @property
    def description(self) -> str:
        """The topics, and their brokers."""
        if self.pattern:
            return f"Kafka topics like `{self.pattern}` of {self.brokers}."
        topics = ", ".join(f"`{topic}`" for topic in self.names)
        return f"Kafka topic{'s' if len(self.names) > 1 else ''} {topics} of {self.brokers}."

    @property
    def tells_producers(self) -> bool:
        """By partition."""
        return True

    def producer(self, split: str) -> str:
        """The partition, also of a topic that was made again."""
        topic, number, *_ = split.split("/")
        return str(Partition(topic.partition("~")[0], int(number)))

    def partition_count(self) -> int:
        """Number of partitions of its topics; asks the brokers."""
        from rivermark.ingest.source.kafka.cluster import Cluster

        cluster = Cluster(self.client_settings(), self.isolation)
        names = cluster.matching(self.pattern) if self.pattern else self.names
        return sum(len(topic.partitions) for topic in cluster.topics(names).values())

    def open(self, landing_root: str) -> SourceReader:
        """Open a reader; it connects when it is first used."""
        require_kafka_client(f"reading {self.description.rstrip('.')}")
        # The reader loads the client, which a declaration does not need.
        from rivermark.ingest.source.kafka.decoding import check_format
        from rivermark.ingest.source.kafka.reader import KafkaReader

        check_format(self.format)
        check_format(self.key_format)
        return KafkaReader(self.name, self)
