"""Spark's reports of finished batches, handed to the thread that supervises the queries.

The JVM calls the listener directly: PySpark's own wrapper makes a Python object of each report, by
a hundred calls into the JVM, to be turned into text again. Written for Spark 4.2; with another
version the wrapper is used.
"""

from __future__ import annotations

import json
import queue
from typing import Any, ClassVar, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from rivermark.runtime.spark.version import is_known_version

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
