"""The query of a stream that runs a process function."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from rivermark.lake.table import Table
from rivermark.process.spark import ProcessBuild
from rivermark.runtime.appending import STORES, AppendHost
from rivermark.runtime.process_record import admit
from rivermark.settings import Settings
from rivermark.stream import Stream

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
        self._build = replace(declared, buckets=record.buckets)
        self.ticks = declared.clock

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

    def build(self, *frames: DataFrame) -> DataFrame:
        """The process's rows, by as many buckets as the checkpoint has."""
        return self._build(*frames)
