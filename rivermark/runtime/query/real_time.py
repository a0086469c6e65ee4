"""The query of a stream that is also sent in real time: a second one beside that of its tables.

It reads the topic that the stream's ingest reads, makes the same rows by the same `build`, and
sends them message by message, in batches that last as long as the sink's `every`. Its checkpoint
lies within the stream's, so a reset archives both. Spark writes down how far a batch came when it
ends: after a stop the last one is done again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructField,
    StructType,
)

from rivermark.connect.kafka import kafka_settings
from rivermark.ingest.real_time.rows import real_time_rows
from rivermark.ingest.source.kafka.source import KafkaSource
from rivermark.lake.lake import Lake
from rivermark.model.errors import RivermarkError
from rivermark.model.sink import owned
from rivermark.model.stream import Stream
from rivermark.model.table import Table
from rivermark.model.time import MILLISECOND
from rivermark.runtime.checkpoint.power_failure import drop_torn_batches
from rivermark.runtime.query.append import AppendHost
from rivermark.runtime.query.base import Backlog
from rivermark.runtime.query.build import apply_build
from rivermark.runtime.query.columns import check_columns
from rivermark.runtime.query.static_tables import StaticTables
from rivermark.settings import Settings
from rivermark.sinks.real_time import REAL_TIME, RealTime

WATCH_SECONDS: Final = 5.0
"""How often a running query asks the brokers for the ids of its topics."""
JSON: Final = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
}


class RealTimeQuery(Backlog):
    """Sends an output's rows in real time. As a backlog it is polled: a query that died raises."""

    def __init__(
        self,
        spark: SparkSession,
        stream: Stream,
        real_time: RealTime,
        static: StaticTables,
        lake: Lake,
        checkpoint: str,
    ) -> None:
        self._spark = session_of(spark)
        self._stream = stream
        self._static = static
        self._checkpoint = f"{checkpoint}/{REAL_TIME}"
        self._ingest, self._output, self._sink = real_time
        self._query: StreamingQuery | None = None
        drop_torn_batches(stream.name, self._checkpoint, lambda: None)
        # Loads Kafka's client, which other streams do not need.
        from rivermark.runtime.checkpoint.topic_offsets import TopicOffsets

        self._offsets = TopicOffsets(lake, stream.name, self._ingest, self._checkpoint)
        self._watched = 0.0

    def start(self) -> None:
        """Start the query in real-time mode.

        Raises:
            RivermarkError: the topic is missing, or the session has too few task slots.
            KeysNotUnique: a static table would repeat the rows that it joins.
        """
        self._check_slots()
        self._query = self._start(realTime=f"{self._sink.every // MILLISECOND} milliseconds")

    def settle(self) -> None:
        """Send what is there, in micro-batches, and end: a bounded run waits for no message."""
        self._query = self._start(availableNow=True)
        self._query.awaitTermination()

    def poll(self) -> int:
        """Raise what ended the query, if anything has.

        Raises:
            RecordsLost: a topic was made again, or messages that were not sent yet are gone.
        """
        query = self._query
        if query is not None and not query.isActive:
            self._offsets.check()
            raise query.exception() or RivermarkError("its query in real time was stopped")
        if query is not None and time.monotonic() - self._watched >= WATCH_SECONDS:
            self._watched = time.monotonic()
            self._offsets.watch()
        return 0

    def waiting(self) -> int:
        """Nothing: the query takes up what comes."""
        return 0

    def describe(self) -> list[str]:
        """Nothing: see `waiting`."""
        return []

    def numbers(self) -> dict[str, int | float]:
        """Messages of the last batch in real time that was finished."""
        progress: Any = self._query.lastProgress if self._query is not None else None
        if progress is None:
            return {}
        return {"real_time_messages": int(progress["numInputRows"])}

    def stop(self) -> None:
        """Stop the query; what it has sent since its last checkpoint is sent again."""
        if self._query is not None:
            self._query.stop()

    def _start(self, **trigger: Any) -> StreamingQuery:
        self._static.check()
        self._offsets.check()
        name = f"{self._stream.name} in real time"
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", name)
        sink = kafka_settings(self._sink.brokers, self._sink.settings)
        writer = self._messages().writeStream.format("kafka").outputMode("update").queryName(name)
        writer = writer.options(**{f"kafka.{key}": value for key, value in sink.items()})
        writer = writer.option("topic", self._sink.topic)
        return writer.option("checkpointLocation", self._checkpoint).trigger(**trigger).start()

    def _messages(self) -> DataFrame:
        """The key and the value of each message to send."""
        stream, output = self._stream, self._output
        source = cast(KafkaSource, self._ingest.source)
        settings = kafka_settings(source.brokers, self._sink.settings)
        events = real_time_rows(self._spark, self._ingest, settings)
        rows = apply_build(stream.name, stream.build, events, *self._static.read(self._spark))
        check_columns(stream, rows.schema)
        if output.where is not None:
            rows = rows.where(output.where())
        return rows.select(
            key_of(self._sink.key_of(output.table)).alias("key"),
            value_of(output.table).alias("value"),
        )

    def _check_slots(self) -> None:
        """Refuse a session in which messages of some partitions would wait for others."""
        source = cast(KafkaSource, self._ingest.source)
        partitions, slots = source.partition_count(), self._spark.sparkContext.defaultParallelism
        if partitions >= slots:
            raise RivermarkError(
                f"stream '{self._stream.name}': each of the {partitions} partitions of "
                f"{source.name} takes a task slot of Spark for itself in real time, and the "
                f"session has {slots}; give it more (RIVERMARK_MASTER), and start again"
            )


class RealTimeHost(AppendHost):
    """Hosts an append stream one of whose outputs is also sent in real time."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        stream: Stream,
        run_id: str,
        check: Callable[[], None] = owned,
        *,
        real_time: RealTime,
    ) -> None:
        super().__init__(spark, settings, stream, run_id, check)
        self.backlog = self._real_time = RealTimeQuery(
            spark, stream, real_time, self._static, self.lake, self.checkpoint
        )

    def start(self, *, bounded: bool) -> StreamingQuery:
        """Start both queries; in a bounded run the one in real time has ended already."""
        if not bounded:
            self._real_time.start()
        return super().start(bounded=bounded)

    def stop(self, patience: float = 30.0) -> None:
        """Stop both queries."""
        try:
            self._real_time.stop()
        finally:
            super().stop(patience)


def session_of(spark: SparkSession) -> SparkSession:
    """A session of its own for the query, which is planned again at each checkpoint.

    Messages wait for that. Choosing a static table's files by their statistics took two thirds of
    the planning, and there is nothing to leave out: such a table is read whole. A topic has no
    partitions to prune either; to look for some, Spark writes out all that a join's key is made of,
    which took minutes for a contract of a dozen fields.
    """
    session = spark.newSession()
    session.conf.set("spark.databricks.delta.stats.skipping", "false")
    session.conf.set("spark.sql.optimizer.dynamicPartitionPruning.enabled", "false")
    return session


def key_of(names: tuple[str, ...]) -> Column:
    """The key of a message: the value of one column as text, of several as a JSON list of texts."""
    texts = [F.col(name).cast("string") for name in names]
    return texts[0] if len(texts) == 1 else F.to_json(F.array(*texts))


def value_of(table: Table) -> Column:
    """The row as a JSON object, decimals as texts as a `KafkaSink` writes them."""
    columns = []
    for field in table.schema.fields:
        column, kind = F.col(field.name), _sent_as(field.dataType)
        columns.append(column if kind == field.dataType else column.cast(kind).alias(field.name))
    return F.to_json(F.struct(*columns), JSON)


def _sent_as(kind: DataType) -> DataType:
    """The type with texts for decimals, however deep."""
    if isinstance(kind, DecimalType):
        return StringType()
    if isinstance(kind, ArrayType):
        return ArrayType(_sent_as(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _sent_as(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        fields = [StructField(f.name, _sent_as(f.dataType), f.nullable) for f in kind.fields]
        return StructType(fields)
    return kind
