"""Rows as messages of a Kafka topic: the declaration of the sink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.types import TimestampType

from rivermark.connect.kafka import require_kafka_client
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.sink import Delivery, Holding, OnReplace, Sink, SinkContext, SinkWriter
from rivermark.sinks.kafka_options import DEDUPLICATION_KEY, KafkaSinkOptions

if TYPE_CHECKING:
    from rivermark.model.table import Table


@declared("sink", lambda values: values.get("topic"))
@dataclass(frozen=True, kw_only=True)
class KafkaSink(KafkaSinkOptions, Sink):
    """Sends each row as a JSON object, to be read with `isolation.level=read_committed`.

    The key of a message is made of the table's keys, or of `key`: the value of one column as text,
    the values of several as a JSON list. Rows of a key go to one partition in their order.
    `timestamp` names a column whose values are the messages' timestamps; rows of a batch are sent
    in their order. Headers name stream, generation and batch.

    `guarantee="at least once"` sends without transactions, which costs the brokers less and lets
    consumers see each message at once. After a kill messages may come again, each with the value of
    its header `deduplication_key` that it had before.

    `owner` distinguishes deployments that write to the same brokers: if two have the same owner,
    stream and table, only the one that began last can write. `settings` and `brokers` are as those
    of a `KafkaSource`.
    """

    on_replace: ClassVar[OnReplace] = "skips"

    @property
    def delivery(self) -> Delivery:
        """As `guarantee` says."""
        if self.guarantee == "at least once":
            how = f"sent again after a kill, with the same header `{DEDUPLICATION_KEY}`"
        else:
            how = "by a transaction that holds rows and batch; read committed messages only"
        return Delivery(self.guarantee, how)

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

    def holding(self, context: SinkContext) -> Holding | None:
        """The batch that the topic holds by its consumer group; its messages are not counted."""
        if self.guarantee != "exactly once":
            return None
        require_kafka_client(f"reading {self.target}")
        from rivermark.sinks.kafka_writers import Transactional

        writer = Transactional(self, context)
        try:
            return Holding(writer.recorded())
        finally:
            writer.close()

    def open(self, context: SinkContext) -> SinkWriter:
        """A writer; of one exactly once, it is the only one that can write from its start on."""
        require_kafka_client(f"writing to {self.target}")
        # The writers load the client, which a declaration does not need.
        from rivermark.sinks.kafka_writers import Repeating, Transactional

        writer = Transactional if self.guarantee == "exactly once" else Repeating
        return writer(self, context)
