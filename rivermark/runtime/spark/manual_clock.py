"""A query whose clock is ours: Spark looks for input when the clock is set, and waits otherwise.

Spark's own trigger looks every so many seconds, whether there is input or not, and all queries at
the same instant. Spark's manual clock, made for its tests, is in its main JAR; a query takes the
clock as an argument that the public API only does not offer. It is always set to the real time, so
the times of batches are true; it stands still within a batch, so durations are measured here.
Written for Spark 4.2; with another version the query gets Spark's own trigger.
"""

from __future__ import annotations

import time
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rivermark.runtime.spark.version import is_known_version

SQL = "org.apache.spark.sql"


class QueryClock:
    """The clock of one query. `woken` is the last moment (monotonic, seconds) it was set.

    A new clock is set to the present: a query looks for input when it starts.
    """

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark.sparkContext._jvm
        self.woken = time.monotonic()
        self.java = getattr(jvm, "org.apache.spark.util.ManualClock")(_now())

    def wake(self) -> None:
        """Let the query look for input, at once or when its present batch is done."""
        self.woken = time.monotonic()
        self.java.setTime(_now())


def start_clocked(
    spark: SparkSession,
    frame: DataFrame,
    writer: DataStreamWriter,
    *,
    name: str,
    checkpoint: str,
    interval: float,
) -> tuple[StreamingQuery, QueryClock | None]:
    """Start a query with a function for its batches, as the writer would, but by a clock of ours.

    Where that is not known to work, it is triggered each `interval` seconds and has no clock.
    """
    if not is_known_version():
        writer = writer.queryName(name).option("checkpointLocation", checkpoint)
        return writer.trigger(processingTime=f"{interval} seconds").start(), None
    clock = QueryClock(spark)
    jvm: Any = spark.sparkContext._jvm
    option = getattr(jvm, "scala.Option")
    options = jvm.PythonUtils.toScalaMap({"checkpointLocation": checkpoint, "queryName": name})
    # The function as the writer wrapped it for the JVM; there is no other way to it.
    held = writer._jwrite.getClass().getDeclaredField("foreachBatchWriter")
    held.setAccessible(True)
    sink_of = getattr(jvm, f"{SQL}.execution.streaming.sources.ForeachBatchSink")
    sink = sink_of(held.get(writer._jwrite), frame._jdf.exprEnc())
    query = (
        spark._jsparkSession.sessionState()
        .streamingQueryManager()
        .startQuery(
            option.apply(name),
            option.empty(),
            option.apply(checkpoint),
            frame._jdf,
            options,
            sink,
            getattr(jvm, f"{SQL}.streaming.OutputMode").Append(),
            False,
            True,
            getattr(jvm, f"{SQL}.streaming.Trigger").ProcessingTime("1 millisecond"),
            clock.java,
            option.empty(),
            option.empty(),
        )
    )
    return StreamingQuery(query), clock


def _now() -> int:
    return time.time_ns() // 1_000_000
