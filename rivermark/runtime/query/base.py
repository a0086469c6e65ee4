"""One running query of a stream: its checkpoint, its start and stop, its batches."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.data_file_check import check_added
from rivermark.lake.integrity.log_check import check_newer
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.model.sink import owned
from rivermark.model.stream import AnyStream
from rivermark.runtime.batch_metrics import BatchMetrics, BatchResult, batch_metrics
from rivermark.runtime.checkpoint.generation import (
    check_checkpoint,
    newest_batch,
    newest_entry,
    open_generation,
)
from rivermark.runtime.checkpoint.positions import check_positions, check_unread
from rivermark.runtime.checkpoint.power_failure import CheckpointSync, drop_torn_batches
from rivermark.runtime.checkpoint.state_paths import correct_state_paths
from rivermark.runtime.query.trigger_policy import Trigger
from rivermark.runtime.spark.callbacks import take_batches
from rivermark.runtime.spark.input_size import chosen_bytes
from rivermark.runtime.spark.manual_clock import QueryClock, start_clocked
from rivermark.settings import Settings


class Backlog(Protocol):
    """Input of a query that lies outside Spark's own sources, such as files in a folder."""

    def poll(self) -> int:
        """Take up new input; returns how much. Called again and again while the query runs."""
        ...

    def settle(self) -> None:
        """Take up all input that is complete, waiting for what is still being written."""
        ...

    def waiting(self) -> int:
        """The amount of input that is known and not taken up."""
        ...

    def describe(self) -> list[str]:
        """The input that is not taken up and why, a line each."""
        ...

    def numbers(self) -> dict[str, int | float]:
        """The lag behind the input, where that has parts such as partitions."""
        ...


class Watermark:
    """The progress of a stream in event time. All times are UTC."""

    def reached(self) -> datetime | None:
        """The watermark so far, that of earlier runs included; None before the first."""
        return None

    def after(self, batch: int) -> datetime | None:
        """The moment up to which all results are written after a batch, where the stream knows.

        None leaves it to the batch's own result, or to Spark's report.
        """
        return None

    def of_inputs(self) -> dict[str, datetime]:
        """For a stream of several inputs: the newest event time of each, by table name."""
        return {}


class QueryHost(ABC):
    """Hosts the query of one stream: subclasses say what is read and how a batch is written.

    What else distinguishes them they set in their constructor: `conf` (Spark settings of the query
    alone), `trigger`, `backlog` and `watermark`. The host owns the stream's generation and
    checkpoint; the caller holds the stream's lease.
    """

    # A query takes its settings from the session at its start; two starts must not mix them up.
    _starting = threading.Lock()

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        stream: AnyStream,
        run_id: str,
        check: Callable[[], None] = owned,
    ) -> None:
        """Raises CheckpointIncompatible where checkpoint and tables do not belong together."""
        self.spark = spark
        self.settings = settings
        self.lake: Lake = settings.lake()
        self.stream = stream
        self.run_id = run_id
        self.generation = open_generation(self.lake, stream, settings.shuffle_partitions)
        self.origin = self.generation.origin(stream, run_id, check)
        folder = self.lake.checkpoint(stream.name, self.generation.number)
        drop_torn_batches(stream.name, folder, lambda: newest_batch(self.lake, stream, self.origin))
        correct_state_paths(folder, stream.name)
        self.checkpoint = check_checkpoint(self.lake, stream, self.origin)
        self._checkpoint_sync = CheckpointSync(self.checkpoint)
        check_positions(self.lake, stream, self.generation.number)
        self.conf = {
            "spark.sql.shuffle.partitions": str(self.generation.shuffle_partitions),
            **chosen_bytes(settings),
        }
        self.trigger = Trigger(settings.trigger_seconds)
        self.watermark = Watermark()
        self.backlog: Backlog | None = None
        self.query: StreamingQuery | None = None
        self.written: dict[int, BatchResult] = {}
        self._checked_to: dict[str, int] = {}
        """Up to which version the log of each input is checked."""
        self.busy = False
        self.bounded = False
        self.batches = 0
        self.clock: QueryClock | None = None
        self.error: Exception | None = None

    @abstractmethod
    def read(self) -> DataFrame:
        """The streaming DataFrame whose batches are written."""

    @abstractmethod
    def write(self, frame: DataFrame, batch: int) -> BatchResult:
        """Write one micro-batch; may be called again with the same batch after a restart."""

    def resume(self) -> None:  # noqa: B027 - most have nothing to do
        """Make the checkpoint ready for the query, once a start has passed its checks."""

    def start(self, *, bounded: bool) -> StreamingQuery:
        """Start the query: until its input is drained, or until it is stopped."""
        self.bounded = bounded
        self.error = None
        with self._starting:
            for name, value in self.conf.items():
                self.spark.conf.set(name, value)
            self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.stream.name)
            frame = self.read()
            self.resume()
            writer = take_batches(self.spark, frame.writeStream, self._batch)
            if bounded:
                writer = writer.queryName(self.stream.name)
                writer = writer.option("checkpointLocation", self.checkpoint)
                self.query = writer.trigger(availableNow=True).start()
            else:
                self.query, self.clock = start_clocked(
                    self.spark,
                    frame,
                    writer,
                    name=self.stream.name,
                    checkpoint=self.checkpoint,
                    interval=self.trigger.min_interval,
                )
        return self.query

    def from_first_commit(self, path: str) -> bool:
        """Returns True if to read a table commit by commit, in the order in which its rows came.

        Not where the log was trimmed, or where days were replaced: their first rows would be read
        and the replacement skipped. Then the table is read as it is. The choice counts at the first
        start alone; a later one goes on from its offsets.
        """
        log = CommitLog(path)
        store, checkpoint = filesystem(self.checkpoint)
        started = newest_entry(store, f"{checkpoint}/offsets") is not None
        return log.complete() if started else log.only_appends()

    def wake(self) -> None:
        """Let a continuous query look for input."""
        if self.clock is not None:
            self.clock.wake()

    def active(self) -> bool:
        """Returns True if the query is at a batch, or looking whether there is one."""
        if self.busy:
            return True
        return self.query is not None and bool(self.query.status["isTriggerActive"])

    def has_looked(self) -> bool:
        """True if the query has looked for input, and is done with what there was at first."""
        query = self.query
        if query is None or not query.isActive:
            return True
        return not self.active() and str(query.status["message"]).startswith("Waiting")

    def _batch(self, frame: DataFrame, batch: int) -> None:
        self.busy = True
        began = self.clock.woken if self.clock else 0.0
        try:
            self.origin.check()
            self._check_inputs(batch)
            self._checkpoint_sync.sync()
            written = self.write(frame, batch)
            if self.clock:
                written.duration_ms = round(1000 * (time.monotonic() - began))
            self.written[batch] = written
        except Exception as error:
            # Spark would return it as text, with two stacks around it.
            self.error = error
            raise
        finally:
            self.batches += 1
            self.busy = False

    def _check_inputs(self, batch: int) -> None:
        """Refuse a batch of commits that are damaged: Spark reads an empty one as without rows."""
        for path in self.trigger.inputs:
            checked = self._checked_to.get(path)
            if checked is None:
                newest = check_unread(path, self.checkpoint, batch)
            else:
                newest = check_newer(path, checked)
                check_added(path, checked + 1, newest)
            self._checked_to[path] = newest

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

    def metrics(self, progress: dict[str, Any]) -> BatchMetrics:
        """Join Spark's report of a batch with the batch's own result."""
        batch = int(progress["batchId"])
        result = self.written.pop(batch, BatchResult())
        for older in [b for b in self.written if b < batch - 8]:
            del self.written[older]
        result.watermark = self.watermark.after(batch) or result.watermark
        identity = (self.stream.name, self.generation.number, self.run_id)
        return batch_metrics(identity, progress, result)
