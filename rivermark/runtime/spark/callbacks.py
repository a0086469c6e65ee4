"""Calls of Spark's JVM into this process: of the function that takes each batch, and a listener.

PySpark's own `foreachBatch` makes a session object for each batch, by a dozen calls into the JVM,
and its wrapper of a listener makes a Python object of each report, by a hundred, to be turned into
text again. Written for Spark 4.2; with another version Spark's own are used.
"""

from __future__ import annotations

import json
import queue
from collections.abc import Callable
from typing import Any, ClassVar, Final

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.readwriter import DataStreamWriter

from rivermark.runtime.spark.version import is_known_version

SOURCES: Final = "org.apache.spark.sql.execution.streaming.sources"
OnBatch = Callable[[DataFrame, int], None]


class BatchCall:
    """The JVM's view of the function that takes each batch; the frame belongs to `spark`."""

    def __init__(self, spark: SparkSession, take: OnBatch) -> None:
        self._spark = spark
        self._take = take

    def call(self, frame: Any, batch: int) -> None:
        """Hand a batch over; what is raised here ends the query."""
        self._take(DataFrame(frame, self._spark), batch)

    class Java:
        """The Java interface that this is."""

        implements: ClassVar = [f"{SOURCES}.PythonForeachBatchFunction"]


def take_batches(spark: SparkSession, writer: DataStreamWriter, take: OnBatch) -> DataStreamWriter:
    """Pass each batch of the query to `take`, as `foreachBatch` does."""
    if not is_known_version():
        return writer.foreachBatch(take)
    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    helper = getattr(gateway.jvm, f"{SOURCES}.PythonForeachBatchHelper")
    helper.callForeachBatch(writer._jwrite, BatchCall(spark, take))
    return writer


WRAPPER: Final = "org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper"


class Reports(StreamingQueryListener):
    """Keeps reports until they are taken; doing more in the listener would slow the queries."""

    def __init__(self, spark: SparkSession) -> None:
        self._progress: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._direct = is_known_version()
        if self._direct:
            jvm: Any = spark.sparkContext._jvm
            self._jlistenerobj = getattr(jvm, WRAPPER)(self)

    def onQueryStarted(self, event: Any) -> None:
        """Ignored: the supervisor started it."""

    def onQueryProgress(self, event: Any) -> None:
        """Keep the report of a finished batch, in JSON."""
        self._progress.put(event.progress().json() if self._direct else event.progress.json)

    def onQueryIdle(self, event: Any) -> None:
        """Ignored: the supervisor looks at the query itself."""

    def onQueryTerminated(self, event: Any) -> None:
        """Ignored: the supervisor looks at the query itself."""

    def take(self) -> list[dict[str, Any]]:
        """The reports since the last call."""
        reports = []
        while not self._progress.empty():
            reports.append(json.loads(self._progress.get()))
        return reports

    class Java:
        """By this py4j knows which Java interface it is."""

        implements: ClassVar = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]
