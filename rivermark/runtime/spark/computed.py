"""A batch computed once: its rows in the driver, or held by executors where they are too many."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeAlias

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark import StorageLevel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermark.runtime.spark.input_size import DRIVER_BYTES, driver_bytes, fits_driver

DRIVER_ROWS: Final = 200_000
"""Up to so many rows that were counted are collected by a driver of the usual bytes."""
MOST_PARTITIONS: Final = 1 << 20
"""More than any batch has: to coalesce to so many joins none."""
TOO_LARGE: Final = "spark.driver.maxResultSize"
"""Named by the error with which Spark gives up to collect (rivermark/runtime/spark/session.py)."""

Computed: TypeAlias = "pa.Table | DataFrame"


@contextmanager
def computed(
    frame: DataFrame, *, grows: bool, again: Callable[[], None] = lambda: None
) -> Iterator[Computed]:
    """The rows of a batch: in the driver where they fit, else a frame that executors hold.

    `grows` says that there may be many more rows than the input has, or far fewer: windows, joins,
    process functions. Where Spark gives up to collect, the batch is computed `again`.
    """
    if fits_driver(frame):
        rows = _collected(frame)
        if rows is not None:
            yield rows
            return
        again()
    # Spark 4.2 cannot keep a plan that is ordered by a column which it no longer has, as that of a
    # stream whose event time carries a watermark; one that is coalesced has no order.
    kept = frame.coalesce(MOST_PARTITIONS).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        most = DRIVER_ROWS * driver_bytes(frame.sparkSession) // DRIVER_BYTES
        if grows and _count(kept) <= most:
            yield kept.toArrow()
        else:
            yield kept
    finally:
        kept.unpersist()


def _collected(frame: DataFrame) -> pa.Table | None:
    """The rows in the driver; None where they are more than Spark lets it take."""
    try:
        return frame.toArrow()
    except Py4JJavaError as error:
        if TOO_LARGE not in str(error):
            raise
        return None


def _count(frame: DataFrame) -> int:
    counted = frame.agg(F.count(F.lit(1)).alias("n")).toArrow()
    return int(counted["n"][0].as_py())
