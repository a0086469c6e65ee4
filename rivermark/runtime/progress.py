"""One row a batch of every stream, kept as a table, and the reports of Spark it is made from."""

from __future__ import annotations

import json
import queue
from dataclasses import asdict
from typing import Any, Final

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType
from pyspark.sql.types import TimestampType as Timestamp

from rivermark.lake.create import create_table
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.table import Table
from rivermark.runtime.tally import BatchTally

COLUMNS: Final = {
    "stream": (StringType(), pa.string()),
    "generation": (IntegerType(), pa.int32()),
    "run_id": (StringType(), pa.string()),
    "batch_id": (LongType(), pa.int64()),
    "started_at": (Timestamp(), pa.timestamp("us", "UTC")),
    "duration_ms": (LongType(), pa.int64()),
    "rows_in": (LongType(), pa.int64()),
    "rows_out": (LongType(), pa.int64()),
    "admitted": (LongType(), pa.int64()),
    "late": (LongType(), pa.int64()),
    "quarantined": (LongType(), pa.int64()),
    "files": (LongType(), pa.int64()),
    "watermark": (Timestamp(), pa.timestamp("us", "UTC")),
    "state_rows": (LongType(), pa.int64()),
    "state_bytes": (LongType(), pa.int64()),
    "dropped_by_watermark": (LongType(), pa.int64()),
    "duplicates": (LongType(), pa.int64()),
}
STREAM_PROGRESS: Final = Table(
    name="ops/stream_progress",
    schema=StructType([StructField(n, kind) for n, (kind, _) in COLUMNS.items()]),
    description="One row a micro-batch of every stream: rows, durations, watermark, state.",
)
ARROW: Final = pa.schema([(n, kind) for n, (_, kind) in COLUMNS.items()])


class Reports(StreamingQueryListener):
    """Hands Spark's reports to the supervising thread; more would slow the queries."""

    def __init__(self) -> None:
        """Begin with no report."""
        self.progress: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.idle: queue.SimpleQueue[str] = queue.SimpleQueue()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Say nothing: the supervisor started it."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Keep the report of a finished batch."""
        self.progress.put(json.loads(event.progress.json))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Keep the sign of life of a query that found nothing to do."""
        self.idle.put(str(event.id))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Say nothing: the supervisor looks at the query itself."""

    def take(self) -> list[dict[str, Any]]:
        """The reports since the last call."""
        found = []
        while not self.progress.empty():
            found.append(self.progress.get())
        return found


class ProgressLog:
    """Collects tallies and appends them to `ops/stream_progress`, many in one commit."""

    def __init__(self, lake: Lake) -> None:
        """Create the table where needed."""
        create_table(lake, STREAM_PROGRESS)
        self._path = lake.path(STREAM_PROGRESS)
        self._rows: list[BatchTally] = []

    def add(self, tally: BatchTally) -> None:
        """Keep a batch for the next flush."""
        self._rows.append(tally)

    def flush(self) -> None:
        """Append what was kept."""
        if not self._rows:
            return
        rows = pa.Table.from_pylist([asdict(t) for t in self._rows], ARROW)
        properties = CommitProperties(custom_metadata={"userMetadata": "{}"})
        with commit_lock(self._path):
            write_deltalake(self._path, rows, mode="append", commit_properties=properties)
        self._rows.clear()
