"""Rows as messages of a Kafka topic that wait for no batch: the declaration of the sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Final, NamedTuple

from rivermark.connect.kafka import OF_REAL_TIME, check_settings
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.names import check_brokers, check_topic
from rivermark.model.sink import (
    BatchIdentity,
    Delivery,
    OnReplace,
    Rows,
    Sink,
    SinkContext,
    SinkWriter,
)
from rivermark.model.stream import AnyStream, Ingest, Output
from rivermark.model.table import Table

REAL_TIME: Final = "real_time"
"""The folder of the query's checkpoint, within that of its stream."""
SHORTEST: Final = timedelta(seconds=5)
"""The shortest batch that Spark allows in real-time mode."""


@declared("sink", lambda values: values.get("topic"))
@dataclass(frozen=True, kw_only=True)
class RealTimeSink(Sink):
    """Sends each row as a JSON object without waiting for a batch, so before the table has it.

    While the stream is live, a second query in Spark's real-time mode reads the topic of the
    stream's one input, an ingest of JSON messages from a `KafkaSource`, and applies the contract
    and `build` to each message. `build` must therefore be stateless and consist of Spark's own
    expressions; `static` tables are read at each checkpoint. The table is written as ever, from
    admitted rows: a row whose event was late is sent, and reaches the table when late rows are
    merged.

    `every` is the time between two checkpoints, 5 seconds at least: after a stop or a kill, what
    was sent since the last one is sent again, and changed static tables count from the next one on.
    Each checkpoint holds messages up for a moment, so the longer `every` is, the fewer wait.

    A message's key is made of the table's keys, or of `key`: the value of one column as text, of
    several as a JSON list of texts. Consumers use it to drop repeated messages. `settings` are
    those of Kafka's Java client, such as `security.protocol`, for reading and writing; they, and
    `brokers`, name variables of the environment as `$NAME`.

    Raises:
        DeclarationError: `every` is below 5 seconds; a column of `key` is not in the table; or the
            stream has several inputs or such sinks, another source, a table whose rows carry
            their watermark, or keeps state; or a setting undoes a promise.
    """

    topic: str
    brokers: str = "127.0.0.1:9092"
    key: tuple[str, ...] = ()
    every: timedelta = timedelta(minutes=2)
    settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)

    delivery: ClassVar[Delivery] = Delivery(
        "at least once", "before the table has it; after a kill again, with the same key"
    )
    on_replace: ClassVar[OnReplace] = "skips"
    real_time: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_topic("sink", self.topic)
        check_brokers(f"sink of topic '{self.topic}'", self.brokers)
        if self.every < SHORTEST:
            raise DeclarationError(
                f"sink of topic '{self.topic}': `every` is {self.every}, the time between two "
                f"checkpoints; Spark allows {SHORTEST} at least"
            )
        names = {name.removeprefix("kafka."): value for name, value in self.settings.items()}
        check_settings(f"sink '{self.topic}'", names, OF_REAL_TIME, known=())

    @property
    def target(self) -> str:
        """The topic and its brokers."""
        return f"Kafka topic {self.topic} of {self.brokers} in real time"

    def check(self, table: Table) -> None:
        """Refuse a table without the columns of the key, or without any."""
        for name in self.key:
            if name not in table.schema.fieldNames():
                raise DeclarationError(f"table '{table.name}': real-time sink: no column '{name}'")
        if not self.key_of(table):
            raise DeclarationError(
                f"table '{table.name}': real-time sink: give the table keys, or the sink a key: "
                "consumers recognise by it what is sent again"
            )

    def key_of(self, table: Table) -> tuple[str, ...]:
        """The columns whose values are the messages' keys."""
        return self.key or table.keys

    def open(self, context: SinkContext) -> SinkWriter:
        """A writer without work: a query of the stream's host sends the rows."""
        return _SentAhead()


class _SentAhead(SinkWriter):
    def last(self) -> BatchIdentity | None:
        """None: the topic's messages belong to no batch."""
        return None

    def write(
        self, rows: Rows, identity: BatchIdentity, metadata: Mapping[str, Any] | None = None
    ) -> int:
        """Do nothing: the rows are sent already."""
        return 0


class RealTime(NamedTuple):
    """A stream's sending in real time: the ingest that it reads, the output, and its sink."""

    ingest: Ingest
    output: Output
    sink: RealTimeSink


def real_time_of(stream: AnyStream) -> RealTime | None:
    """The real-time part of a stream; None where it has no such sink."""
    if isinstance(stream, Ingest):
        return None
    for output in stream.outputs:
        for sink in output.sinks:
            ingest = stream.reads[0]
            if isinstance(sink, RealTimeSink) and isinstance(ingest, Ingest):
                return RealTime(ingest, output, sink)
    return None
