"""One row a batch of every stream, kept as a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from deltalake import write_deltalake
from pyspark.sql.types import (
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
)
from pyspark.sql.types import TimestampType as Timestamp

from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.table import Table
from rivermark.runtime.batch_metrics import BatchMetrics

COLUMNS: Final = {
    "stream": StringType(),
    "generation": IntegerType(),
    "run_id": StringType(),
    "batch_id": LongType(),
    "started_at": Timestamp(),
    "duration_ms": LongType(),
    "rows_in": LongType(),
    "rows_out": LongType(),
    "admitted": LongType(),
    "late": LongType(),
    "quarantined": LongType(),
    "files": LongType(),
    "watermark": Timestamp(),
    "state_rows": LongType(),
    "state_bytes": LongType(),
    "dropped_by_watermark": LongType(),
    "duplicates": LongType(),
    "counters": MapType(StringType(), LongType()),
    "gauges": MapType(StringType(), DoubleType()),
}
STREAM_PROGRESS: Final = Table(
    name="ops/stream_progress",
    schema=StructType([StructField(n, kind) for n, kind in COLUMNS.items()]),
    description="One row a micro-batch of every stream: rows, durations, watermark, state.",
)


class ProgressLog:
    """Collects batches and appends them to `ops/stream_progress`, many in one commit."""

    def __init__(self, lake: Lake) -> None:
        create_table(lake, STREAM_PROGRESS)
        self._path = lake.path(STREAM_PROGRESS)
        self._rows: list[BatchMetrics] = []

    def add(self, batch: BatchMetrics) -> None:
        """Keep a batch for the next flush."""
        self._rows.append(batch)

    def flush(self) -> None:
        """Append what was kept."""
        if not self._rows:
            return
        rows = rows_of(STREAM_PROGRESS, [asdict(row) for row in self._rows])
        with commit_lock(self._path):
            write_deltalake(
                self._path, rows, mode="append", commit_properties=commit_properties({})
            )
        self._rows.clear()
