"""Rows as messages of a Kafka topic: each batch is one transaction, with its identity in it.

The identity is kept where consumers keep their offsets, in the same transaction as the messages: a
consumer group of the sink's own, without members. So the broker holds both or neither.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
import pyarrow as pa
from pyspark.sql.types import TimestampType

from rivermark.model.client_settings import kafka_settings, require_kafka_client
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError, RivermarkError
from rivermark.model.sink import (
    BatchIdentity,
    Delivery,
    OnReplace,
    Rows,
    Sink,
    SinkContext,
    SinkWriter,
)

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

    from rivermark.model.table import Table

PATIENCE_SECONDS: Final = 60.0
AT_ONCE: Final = 10_000
"""Rows that are Python objects at a time."""
TRANSACTION_MILLIS: Final = "600000"
"""How long a batch may take; brokers allow 15 minutes unless they are set otherwise."""


@declared("sink", lambda values: values.get("topic"))
@dataclass(frozen=True, kw_only=True)
class KafkaSink(Sink):
    """Sends each row as a JSON object, to be read with `isolation.level=read_committed`.

    Messages have the table's keys, or `key`, as their key: the value of one column as text, of
    several as a JSON list. Rows of a key go to one partition in their order. `timestamp` names a
    column whose values are the messages' timestamps. Headers name stream, generation and batch.

    `owner` distinguishes deployments that write to the same brokers: of two that have one name,
    stream and table, only the one that began last can write. `settings` and `brokers` are as those
    of a `KafkaSource`.
    """

    topic: str
    brokers: str = "127.0.0.1:9092"
    key: tuple[str, ...] = ()
    timestamp: str | None = None
    owner: str = "rivermark"
    settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    delivery: ClassVar[Delivery] = Delivery(
        "exactly once", "by a transaction that holds rows and batch; read committed messages only"
    )
    on_replace: ClassVar[OnReplace] = "skips"

    @property
    def target(self) -> str:
        """The topic and its brokers."""
        return f"Kafka topic {self.topic} of {self.brokers}"

    def check(self, table: Table) -> None:
        """Refuse columns that the table does not have, and a timestamp that is none."""
        types = {f.name: f.dataType for f in table.schema.fields}
        for name in (*self.key, *([self.timestamp] if self.timestamp else [])):
            if name not in types:
                raise DeclarationError(f"table '{table.name}': Kafka sink: no column '{name}'")
        if self.timestamp and not isinstance(types[self.timestamp], TimestampType):
            raise DeclarationError(
                f"table '{table.name}': Kafka sink: '{self.timestamp}' is not a timestamp"
            )

    def open(self, context: SinkContext) -> SinkWriter:
        """End what a killed writer had begun, and shut out one that still runs."""
        require_kafka_client(f"writing to {self.target}")
        return _Writer(self, context)


class _Writer(SinkWriter):
    def __init__(self, sink: KafkaSink, context: SinkContext) -> None:
        self._sink = sink
        self._origin = context.origin
        self._key = sink.key or context.table.keys
        self._columns = context.table.schema.fieldNames()
        self._name = ".".join((sink.owner, context.origin.stream, context.table.name, sink.topic))
        self._settings = kafka_settings(sink.brokers, sink.settings)
        self._encoder = msgspec.json.Encoder()
        self._last: BatchIdentity | None = None
        self._is_current = False

    @cached_property
    def _producer(self) -> Producer:
        from confluent_kafka import Producer

        made = Producer(
            {
                "transaction.timeout.ms": TRANSACTION_MILLIS,
                "linger.ms": "5",
                # As Java's clients divide keys among partitions.
                "partitioner": "murmur2_random",
                "log_level": "0",
                **self._settings,
                "transactional.id": self._name,
            }
        )
        self._try("begin", lambda: retried(lambda: made.init_transactions(PATIENCE_SECONDS)))
        return made

    @cached_property
    def _consumer(self) -> Consumer:
        from confluent_kafka import Consumer

        return Consumer(
            {
                "log_level": "0",
                **self._settings,
                "group.id": self._name,
                "enable.auto.commit": "false",
                "isolation.level": "read_committed",
            }
        )

    def last(self) -> BatchIdentity | None:
        if not self._is_current:
            # First, so that a transaction of a killed writer has ended, one way or the other.
            assert self._producer  # noqa: S101
            self._try("find", self._require_topic)
            [held] = self._try("read", lambda: retried(self._committed))
            self._last = self._identity(held.metadata) if held.offset >= 0 else None
            self._is_current = True
        return self._last

    def _committed(self) -> Any:
        from confluent_kafka import KafkaException

        places = self._consumer.committed([self._place(-1)], PATIENCE_SECONDS)
        for place in places:
            # Unknown is not none: a batch would be sent again.
            if place.error is not None:
                raise KafkaException(place.error)
        return places

    def _require_topic(self) -> None:
        """A topic that is missing would be waited for until the transaction's time is over."""
        if self._sink.topic not in self._consumer.list_topics(timeout=PATIENCE_SECONDS).topics:
            raise RivermarkError(
                f"stream '{self._origin.stream}': there is no topic '{self._sink.topic}' at Kafka "
                f"{self._sink.brokers}; make it, with the partitions that its readers need"
            )

    def _identity(self, text: str | None) -> BatchIdentity | None:
        held = msgspec.json.decode(text or "{}", type=dict[str, Any])
        identity = BatchIdentity(
            held.get("stream", ""), held.get("generation", -1), held.get("batch", -1)
        )
        return identity if identity == self._origin.batch(identity.batch) else None

    def _place(self, offset: int, metadata: str = "") -> Any:
        from confluent_kafka import TopicPartition

        return TopicPartition(self._sink.topic, 0, offset, metadata)

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        last = self.last()
        if last is not None and last.batch >= identity.batch:
            return 0
        table = rows if isinstance(rows, pa.Table) else rows.toArrow()
        self._is_current = False
        self._try("write", lambda: self._send(table, identity))
        self._last, self._is_current = identity, True
        return int(table.num_rows)

    def _send(self, table: pa.Table, identity: BatchIdentity) -> None:
        producer = self._producer
        producer.begin_transaction()
        try:
            headers = {name: str(value) for name, value in asdict(identity).items()}
            rows = table.select(self._columns)
            for start in range(0, rows.num_rows, AT_ONCE):
                for row in rows.slice(start, AT_ONCE).to_pylist():
                    self._produce(row, headers)
            place = self._place(identity.batch + 1, json.dumps(asdict(identity)))
            group = self._consumer.consumer_group_metadata()
            retried(lambda: producer.send_offsets_to_transaction([place], group, PATIENCE_SECONDS))
            self._origin.check()
            producer.commit_transaction(PATIENCE_SECONDS)
        except Exception:
            # The next one begins with a new producer, which ends what this one left open.
            del self._producer
            raise

    def _produce(self, row: Mapping[str, Any], headers: Mapping[str, str]) -> None:
        at: datetime | None = row[self._sink.timestamp] if self._sink.timestamp else None
        # 0 is now.
        millis = 0 if at is None else int(at.timestamp() * 1000)
        value = self._encoder.encode(row)
        while True:
            try:
                self._producer.produce(
                    self._sink.topic,
                    value,
                    key=self._key_of(row),
                    timestamp=millis,
                    headers={**headers},
                )
            except BufferError:
                self._producer.poll(1)
            else:
                self._producer.poll(0)
                return

    def _key_of(self, row: Mapping[str, Any]) -> bytes | None:
        values = [row[name] for name in self._key]
        if not values:
            return None
        if len(values) > 1:
            return self._encoder.encode(values)
        text = self._encoder.encode(values[0])
        return msgspec.json.decode(text).encode() if text.startswith(b'"') else text

    def _try(self, what: str, action: Any) -> Any:
        """Do something with the brokers; their errors name topic and stream."""
        from confluent_kafka import KafkaException

        try:
            return action()
        except KafkaException as error:
            raise RivermarkError(
                f"stream '{self._origin.stream}' cannot {what} its batch at Kafka topic "
                f"'{self._sink.topic}' of {self._sink.brokers}: {error.args[0].str()}"
            ) from error

    def replace(
        self,
        rows: Rows,
        days: Collection[date],
        replacement: str,
        metadata: Mapping[str, Any] | None = None,
    ) -> int:
        """Skip: what consumers have read cannot be taken back."""
        return 0

    def close(self) -> None:
        """Close the connections."""
        if "_consumer" in self.__dict__:
            self._consumer.close()
            del self._consumer
        self.__dict__.pop("_producer", None)


def retried(action: Callable[[], Any]) -> Any:
    """Do something again while the brokers only ask for time, as after their start."""
    from confluent_kafka import KafkaError, KafkaException

    # The client calls few errors retriable outside of transactions.
    passing = (
        KafkaError.NOT_COORDINATOR,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.UNSTABLE_OFFSET_COMMIT,
    )
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return action()
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            passes = cause.retriable() or cause.code() in passing
            if not passes or time.monotonic() > until:
                raise
            time.sleep(0.2)
