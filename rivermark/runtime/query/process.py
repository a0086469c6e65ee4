"""The query of a stream that runs a process function."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.lake.filesystem import filesystem
from rivermark.lake.schema import create_table
from rivermark.model.sink import owned
from rivermark.model.stream import Stream
from rivermark.process.instants import Millis
from rivermark.process.spark import ProcessBuild
from rivermark.process.spark.meter import Meter
from rivermark.process.spark.replaying import replays_of
from rivermark.runtime.batch_metrics import BatchResult
from rivermark.runtime.checkpoint.generation import newest_entry
from rivermark.runtime.checkpoint.identity import check_identity, process_identity
from rivermark.runtime.checkpoint.process_schema import admit, write_record
from rivermark.runtime.query.append import EMPTY_BATCHES, STORES, AppendHost
from rivermark.runtime.query.trigger_policy import Trigger
from rivermark.settings import Settings

ROWS_PER_ARROW_BATCH = 100_000
"""Rows that cross to Python at once: a packet a bucket is made of each such batch."""


@dataclass
class ProcessTrigger(Trigger):
    """Starts batches for timers of the wall clock too.

    With a `clock` each look at the input makes a batch, so a batch without events is no reason to
    look again. `wakes` is, by bucket, when its next timer is due (ms).
    """

    clock: bool = False
    events: int = 0
    wakes: dict[int, Millis | None] = field(default_factory=dict)
    _due_second: int = 0

    def again(self) -> bool:
        """Returns True if a batch may have left something."""
        return not self.clock or self.events > 0

    def timer(self) -> int:
        """The second in which a timer was due last.

        Until the first batch of a run has reported the timers, it may be each.
        """
        now = time.time_ns() // 1_000_000
        due = any(at is not None and at <= now for at in self.wakes.values())
        if self.clock and (due or not self.wakes):
            self._due_second = now // 1_000
        return self._due_second


class ProcessHost(AppendHost):
    """Hosts an append stream whose build is a process function.

    The number of buckets is that of the first start, and state that the process cannot read stops
    the start, not a batch. Its events are late by the watermark of their own batch, so that a batch
    runs by that of the batches before it.
    """

    closes_at_once = False

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        stream: Stream,
        run_id: str,
        check: Callable[[], None] = owned,
    ) -> None:
        """Raises CheckpointIncompatible where the process cannot read its state."""
        super().__init__(spark, settings, stream, run_id, check)
        declared = stream.build
        assert isinstance(declared, ProcessBuild)  # noqa: S101  # chosen by host_for
        self._record = admit(stream.name, self.checkpoint, declared.declared, declared.buckets)
        self._identity = process_identity(declared)
        self._meter = Meter(spark.sparkContext)
        self._process = replace(
            declared,
            buckets=self._record.buckets,
            meter=self._meter,
            placing=self._record.placing,
            labelled_for=self._record.labelled_for,
        )
        self.build = self._build_process
        self._holding = [declared.leads(place) for place in range(len(stream.reads))]
        # The store that Spark wants for it; timers fire in batches without data.
        self.conf |= {
            "spark.sql.streaming.stateStore.providerClass": STORES["rocksdb"],
            EMPTY_BATCHES: "true",
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_PER_ARROW_BATCH),
        }
        self._replays = replays_of(stream.name) if self._record.replays else None
        inputs = [*self.trigger.inputs]
        if self._replays is not None:
            create_table(self.lake, self._replays)
            inputs.append(self.lake.path(self._replays))
        # Spark starts a Python process in the first batch of a run, and ends the query when that
        # has not answered within ten seconds, which cannot be configured. Beside the first batches
        # of ten other queries on two cores it does not.
        self.trigger = self._timers = ProcessTrigger(
            settings.trigger_seconds, inputs, first_batch_alone=True, clock=declared.clock
        )
        store, path = filesystem(self.checkpoint)
        self._resumed = newest_entry(store, f"{path}/commits") is not None
        self._sizes: dict[int, tuple[int, int]] = {}

    def write(self, frame: DataFrame, batch: int) -> BatchResult:
        """Commit the batch's rows, with the metrics and timers that the buckets reported.

        Rows of state are keys that have some and events that wait: Spark sees a row a bucket. A run
        that resumes another knows all buckets once each has had an event; until then the numbers
        are Spark's.
        """
        self._meter.take()
        result = super().write(frame, batch)
        metrics = self._meter.take()
        result.counters, result.gauges = metrics.counters, metrics.gauges
        self._timers.wakes |= metrics.wakes
        self._timers.events = metrics.events
        self._sizes |= metrics.sizes
        if not self._resumed or len(self._sizes) == self._process.buckets:
            result.state_rows = sum(rows for rows, _ in self._sizes.values())
            result.state_bytes = sum(size for _, size in self._sizes.values())
        return result

    def _again(self) -> None:
        self._meter.take()

    def _check_meaning(self) -> None:
        """Refuse state of another class, of other code, or of other parameters."""
        check_identity(self.declared.name, self.checkpoint, self._identity)

    def _build_process(self, *frames: DataFrame) -> DataFrame:
        """The process's rows, by as many buckets as the checkpoint has, keys in those of old."""
        if self._record.placing is None:
            self._record = replace(self._record, placing=self._process.placing_of(*frames))
            write_record(self.checkpoint, self._record)
        if self._replays is None:
            return self._process(*frames)
        # Those of an earlier generation were for a state that is gone.
        current = F.col("generation") == self.generation.number
        replays = self._read(self._replays).where(current)
        return replace(self._process, replays=replays)(*frames)
