"""The query of a stream that runs a process function."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.lake.filesystem import filesystem
from rivermark.lake.schema import create_table
from rivermark.model.stream import Stream
from rivermark.model.table import Table
from rivermark.process.instants import Millis
from rivermark.process.spark import ProcessBuild
from rivermark.process.spark.meter import Meter
from rivermark.process.spark.replaying import replays_of
from rivermark.runtime.batch_metrics import BatchTally
from rivermark.runtime.checkpoint.generation import newest_entry
from rivermark.runtime.checkpoint.process_schema import admit, write_record
from rivermark.runtime.query.append import STORES, AppendHost
from rivermark.runtime.query.base import Written
from rivermark.settings import Settings

ROWS_PER_ARROW_BATCH = 100_000
"""Rows that cross to Python at once: a packet a bucket is made of each such batch."""


class ProcessHost(AppendHost):
    """Hosts an append stream whose build is a process function.

    The number of buckets is that of the first start, and state that the process cannot read stops
    the start, not a batch.
    """

    # Spark starts a Python process in the first batch of a run, and ends the query when that has
    # not answered within ten seconds, which nobody can set. Beside the first batches of ten other
    # queries on two cores it does not.
    alone_at_first = True

    def __init__(
        self, spark: SparkSession, settings: Settings, stream: Stream, run_id: str
    ) -> None:
        """Look whether the state fits; raises CheckpointIncompatible."""
        super().__init__(spark, settings, stream, run_id)
        self._checked = True
        declared = stream.build
        assert isinstance(declared, ProcessBuild)  # noqa: S101  # chosen by host_for
        record = admit(stream.name, self.checkpoint, declared.declared, declared.buckets)
        self._meter = Meter(spark.sparkContext)
        self._record = record
        self._build = replace(
            declared, buckets=record.buckets, meter=self._meter, placing=record.placing
        )
        self._clocked = declared.clock
        self._wakes: dict[int, Millis | None] = {}
        self._tick = 0
        self._given = 0
        store, path = filesystem(self.checkpoint)
        self._begun = newest_entry(store, f"{path}/commits") is not None
        self._sizes: dict[int, tuple[int, int]] = {}
        self._replays = replays_of(stream.name) if record.replays else None
        if self._replays is not None:
            create_table(self.lake, self._replays)

    def conf(self) -> dict[str, str]:
        """The store that Spark wants for it; timers fire in batches without data."""
        return super().conf() | {
            "spark.sql.streaming.stateStore.providerClass": STORES["rocksdb"],
            "spark.sql.streaming.noDataMicroBatches.enabled": "true",
            "spark.sql.execution.arrow.maxRecordsPerBatch": str(ROWS_PER_ARROW_BATCH),
        }

    def watermarked(self, place: int, table: Table, rows: DataFrame) -> DataFrame:
        """With the watermark, but for inputs that are not to hold it back."""
        if not self._build.leads(place):
            return rows
        return super().watermarked(place, table, rows)

    def write(self, frame: DataFrame, batch: int) -> Written:
        """Commit the batch's rows, and take what the process counted meanwhile."""
        self._meter.take()
        written = super().write(frame, batch)
        told = self._meter.take()
        written.counters, written.gauges = told.counters, told.gauges
        self._wakes |= told.wakes
        self._sizes |= told.sizes
        self._given = told.events
        return written

    def goes_on(self) -> bool:
        """Whether a batch may have left something; with a clock every look makes a batch."""
        return not self._clocked or self._given > 0

    def tally(self, progress: dict[str, Any]) -> BatchTally:
        """With what is in the buckets, without what only tells that time has passed.

        Rows of state are keys that have some and events that wait: Spark sees a row a bucket. A run
        that goes on where another ended knows all buckets once each has had an event; until then
        the numbers are Spark's.
        """
        found = super().tally(progress)
        if not self._begun or len(self._sizes) == self._build.buckets:
            rows, sizes = zip(*(self._sizes.values() or [(0, 0)]), strict=True)
            found = replace(found, state_rows=sum(rows), state_bytes=sum(sizes))
        if not self._clocked:
            return found
        tables = [s for s in progress["sources"] if s["description"].startswith("DeltaSource")]
        return replace(found, rows_in=sum(int(s["numInputRows"]) for s in tables))

    def ticks(self) -> int:
        """The second in which a timer of the wall clock was due last, as the buckets told.

        Before they told, which the first batch of a run makes them do, it may be each.
        """
        now = time.time_ns() // 1_000_000
        due = [at for at in self._wakes.values() if at is not None and at <= now]
        if self._clocked and (due or not self._wakes):
            self._tick = now // 1_000
        return self._tick

    def build(self, *frames: DataFrame) -> DataFrame:
        """The process's rows, by as many buckets as the checkpoint has, keys in those of old."""
        if self._record.placing is None:
            self._record = replace(self._record, placing=self._build.placing_of(*frames))
            write_record(self.checkpoint, self._record)
        if self._replays is None:
            return self._build(*frames)
        # Those of an earlier generation were for a state that is gone.
        mine = F.col("generation") == self.generation.number
        replays = self._read(self._replays).where(mine)
        return replace(self._build, replays=replays)(*frames)

    def watched(self) -> list[str]:
        """Its inputs, dead letters to handle again among them."""
        more = [] if self._replays is None else [self.lake.path(self._replays)]
        return super().watched() + more
