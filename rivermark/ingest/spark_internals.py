"""The use that ingest makes of Spark beyond its public API."""

from __future__ import annotations

from pyspark.sql import SparkSession


def engine_is_alive(spark: SparkSession) -> bool:
    """Returns True if the session's JVM still answers."""
    try:
        spark._jvm.System.nanoTime()  # type: ignore[union-attr]
    except Exception:
        # The bridge raises errors of many types once its other end is gone.
        return False
    return True
