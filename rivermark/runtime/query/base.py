"""One running query of a stream: what it has in common whatever kind of stream it serves."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rivermark.lake.lake import Lake
from rivermark.model.stream import AnyStream, Stream, table_of
from rivermark.runtime.batch_metrics import BatchTally
from rivermark.runtime.checkpoint.generation import check_checkpoint, open_generation
from rivermark.runtime.spark.foreach_batch import take_batches
from rivermark.runtime.spark.manual_clock import QueryClock, start_clocked
from rivermark.settings import Settings


@dataclass
class Written:
    """What the writing side knows of a batch that Spark's report does not say."""

    rows_in: int | None = None
    rows_out: int = 0
    admitted: int | None = None
    late: int | None = None
    quarantined: int | None = None
    files: int | None = None
    watermark: datetime | None = None
    touched: frozenset[date] = frozenset()
    duration_ms: int | None = None
    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)


class QueryHost(ABC):
    """Hosts the query of one stream. Subclasses say what is read and how a batch is written.

    The host owns the stream's generation and checkpoint; the caller holds the stream's lease.
    """

    alone_at_first = False
    """Whether the first batch of a run must not share the machine with many others: a continuous
    run begins such a query alone, a bounded one beside one other."""

    # A query takes its settings from the session at its start; two starts must not mix them up.
    _starting = threading.Lock()

    def __init__(
        self, spark: SparkSession, settings: Settings, stream: AnyStream, run_id: str
    ) -> None:
        """Open the generation and look whether checkpoint and tables belong together."""
        self.spark = spark
        self.settings = settings
        self.lake: Lake = settings.lake()
        self.stream = stream
        self.run_id = run_id
        self.generation = open_generation(self.lake, stream, settings.shuffle_partitions)
        self.origin = self.generation.origin(stream, run_id)
        self.checkpoint = check_checkpoint(self.lake, stream, self.origin)
        self.query: StreamingQuery | None = None
        self.written: dict[int, Written] = {}
        self.busy = False
        self.bounded = False
        self.batches = 0
        self.clock: QueryClock | None = None
        self.error: Exception | None = None

    @abstractmethod
    def frame(self) -> DataFrame:
        """The streaming DataFrame whose batches are written."""

    @abstractmethod
    def write(self, frame: DataFrame, batch: int) -> Written:
        """Write one micro-batch; may be called again with the same batch after a restart."""

    def conf(self) -> dict[str, str]:
        """Spark settings of this query alone."""
        return {"spark.sql.shuffle.partitions": str(self.generation.shuffle_partitions)}

    def poll(self) -> int:
        """Look for new input outside Spark's own sources; gives how much was found."""
        return 0

    def recalled(self) -> datetime | None:
        """How far the stream had come in event time before this run."""
        return None

    def waiting(self) -> int:
        """How much input is there and not taken."""
        return 0

    def pending(self) -> list[str]:
        """What waits outside the query, in words."""
        return []

    def inputs_reached(self) -> dict[str, datetime]:
        """For a stream of several inputs: the newest event time of each, by table name."""
        return {}

    def start(self, *, bounded: bool) -> StreamingQuery:
        """Start the query: to drain what is there, or to go on."""
        self.bounded = bounded
        with self._starting:
            for name, value in self.conf().items():
                self.spark.conf.set(name, value)
            self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.stream.name)
            frame = self.frame()
            writer = take_batches(self.spark, frame.writeStream, self._batch)
            if bounded:
                writer = writer.queryName(self.stream.name)
                writer = writer.option("checkpointLocation", self.checkpoint)
                self.query = writer.trigger(availableNow=True).start()
            else:
                self.clock = QueryClock(self.spark)
                self.query = start_clocked(
                    self.spark,
                    frame,
                    writer,
                    self.clock,
                    name=self.stream.name,
                    checkpoint=self.checkpoint,
                )
        return self.query

    def least_seconds(self) -> float:
        """Seconds between the beginnings of two batches at least, in a continuous run."""
        return self.settings.trigger_seconds

    def watched(self) -> list[str]:
        """The tables whose commits are this query's input."""
        assert isinstance(self.stream, Stream)  # noqa: S101 - an ingest says otherwise
        return [self.lake.path(table_of(read)) for read in self.stream.reads]

    def goes_on(self) -> bool:
        """Whether to look again after a batch: for what it left, or what it allowed to close."""
        return True

    def ticks(self) -> int:
        """A number that changes when the passing of time alone is something to look at."""
        return 0

    def wake(self) -> None:
        """Let a continuous query look for input."""
        if self.clock is not None:
            self.clock.wake()

    def active(self) -> bool:
        """Whether the query is at a batch, or looking whether there is one."""
        if self.busy:
            return True
        return self.query is not None and bool(self.query.status["isTriggerActive"])

    def has_looked(self) -> bool:
        """Whether the query has looked for input, and is done with what it found at first."""
        query = self.query
        if query is None or not query.isActive:
            return True
        return not self.active() and str(query.status["message"]).startswith("Waiting")

    def _batch(self, frame: DataFrame, batch: int) -> None:
        self.busy = True
        began = self.clock.woken if self.clock else 0.0
        try:
            written = self.write(frame, batch)
            if self.clock:
                written.duration_ms = round(1000 * (time.monotonic() - began))
            self.written[batch] = written
        except Exception as error:
            # Spark would give it back as text, with two stacks around it.
            self.error = error
            raise
        finally:
            self.batches += 1
            self.busy = False

    def stop(self, patience: float = 30.0) -> None:
        """Stop between two batches; after `patience` seconds also within one, which is safe."""
        query = self.query
        if query is None:
            return
        deadline = time.monotonic() + patience
        while query.isActive and time.monotonic() < deadline:
            if not self.active():
                break
            time.sleep(0.02)
        query.stop()

    def tally(self, progress: dict[str, Any]) -> BatchTally:
        """Join Spark's report of a batch with what the writing side knew."""
        batch = int(progress["batchId"])
        written = self.written.pop(batch, Written())
        for older in [b for b in self.written if b < batch - 8]:
            del self.written[older]
        operators = progress.get("stateOperators") or []
        watermark = (progress.get("eventTime") or {}).get("watermark")
        rows_in = written.rows_in
        spark_watermark = moment(watermark) if watermark else None
        return BatchTally(
            stream=self.stream.name,
            generation=self.generation.number,
            run_id=self.run_id,
            batch_id=batch,
            started_at=moment(progress["timestamp"]) or datetime.now(UTC),
            duration_ms=int(progress.get("batchDuration", 0))
            if written.duration_ms is None
            else written.duration_ms,
            rows_in=int(progress.get("numInputRows", 0)) if rows_in is None else rows_in,
            rows_out=written.rows_out,
            admitted=written.admitted,
            late=written.late,
            quarantined=written.quarantined,
            files=written.files,
            watermark=written.watermark or spark_watermark,
            state_rows=sum(int(o.get("numRowsTotal", 0)) for o in operators),
            state_bytes=sum(int(o.get("memoryUsedBytes", 0)) for o in operators),
            dropped_by_watermark=sum(int(o.get("numRowsDroppedByWatermark", 0)) for o in operators),
            duplicates=sum(
                int((o.get("customMetrics") or {}).get("numDroppedDuplicateRows", 0))
                for o in operators
            ),
            counters=written.counters,
            gauges=written.gauges,
        )


def moment(text: str) -> datetime | None:
    """An instant of Spark's report; the epoch means that there is none yet."""
    found = datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)
    return found if found.year > 1970 else None
