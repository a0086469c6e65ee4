"""One row a batch of every stream, kept as a table, and the reports of Spark it is made from."""

from __future__ import annotations

import json
import queue
from dataclasses import asdict
from typing import Any, ClassVar, Final

from deltalake import write_deltalake
from pyspark import SparkContext
from pyspark.sql.streaming.listener import StreamingQueryListener
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

from rivermark.lake.commit_metadata import noted
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

WRAPPER: Final = "org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper"


class Reports(StreamingQueryListener):
    """Hands Spark's reports to the supervising thread; more would slow the queries.

    The JVM calls it directly: Spark's own wrapper makes a Python object of each report first, by a
    hundred questions to the JVM, to be turned into text again.
    """

    def __init__(self) -> None:
        """Begin with no report."""
        self._progress: queue.SimpleQueue[str] = queue.SimpleQueue()
        jvm: Any = SparkContext._jvm
        self._jlistenerobj = getattr(jvm, WRAPPER)(self)

    def onQueryStarted(self, event: Any) -> None:
        """Say nothing: the supervisor started it."""

    def onQueryProgress(self, event: Any) -> None:
        """Keep the report of a finished batch, in JSON."""
        self._progress.put(event.progress().json())

    def onQueryIdle(self, event: Any) -> None:
        """Say nothing: the supervisor looks at the query itself."""

    def onQueryTerminated(self, event: Any) -> None:
        """Say nothing: the supervisor looks at the query itself."""

    def take(self) -> list[dict[str, Any]]:
        """The reports since the last call."""
        found = []
        while not self._progress.empty():
            found.append(json.loads(self._progress.get()))
        return found

    class Java:
        """By this py4j knows which Java interface it is."""

        implements: ClassVar = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]


class ProgressLog:
    """Collects tallies and appends them to `ops/stream_progress`, many in one commit."""

    def __init__(self, lake: Lake) -> None:
        """Create the table where needed."""
        create_table(lake, STREAM_PROGRESS)
        self._path = lake.path(STREAM_PROGRESS)
        self._rows: list[BatchMetrics] = []

    def add(self, tally: BatchMetrics) -> None:
        """Keep a batch for the next flush."""
        self._rows.append(tally)

    def flush(self) -> None:
        """Append what was kept."""
        if not self._rows:
            return
        rows = rows_of(STREAM_PROGRESS, [asdict(t) for t in self._rows])
        with commit_lock(self._path):
            write_deltalake(self._path, rows, mode="append", commit_properties=noted({}))
        self._rows.clear()
