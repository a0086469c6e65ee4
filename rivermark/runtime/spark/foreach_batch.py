"""The function that Spark's JVM calls in this process with each batch.

PySpark's own `foreachBatch` makes a session object for each batch, by a dozen calls into the JVM.
Written for Spark 4.2; with another version `foreachBatch` itself is used.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import DataFrame, SparkSession
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
