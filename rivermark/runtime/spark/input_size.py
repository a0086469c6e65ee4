"""The size of a batch's input files, by Spark's own plan, and whether the driver takes its rows.

Written for Spark 4.2. With another version it is not known: `input_bytes` returns None.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession

from rivermark.runtime.spark.version import is_known_version
from rivermark.settings import Settings

DRIVER_BYTES: Final = 64 * 1024 * 1024
"""Up to so many bytes of input files the rows of a batch are collected by the driver."""
CHOSEN: Final = "spark.rivermark.driver.bytes"
"""The query's setting of so many, or of those that were chosen."""


def input_bytes(frame: DataFrame) -> int | None:
    """Bytes of the files that the frame reads, before any filter or choice of columns.

    Spark's own estimate for a join is the product of its inputs', so only the leaves are counted.
    """
    if not is_known_version():
        return None
    leaves = frame._jdf.queryExecution().optimizedPlan().collectLeaves()
    sizes = (leaves.apply(n).stats().sizeInBytes() for n in range(leaves.size()))
    return sum(int(str(size)) for size in sizes)


def fits_driver(frame: DataFrame) -> bool:
    """True if the driver may collect what is made of these inputs; no where their size is unknown.

    It then commits from Arrow: a second Spark job and the reading of the table's state for it are
    most of what a small batch costs.
    """
    size = input_bytes(frame)
    return size is not None and size <= driver_bytes(frame.sparkSession)


def driver_bytes(spark: SparkSession) -> int:
    """The bytes of input files up to which the driver collects, in a query of that session."""
    return int(spark.conf.get(CHOSEN, "") or DRIVER_BYTES)


def chosen_bytes(settings: Settings) -> dict[str, str]:
    """The setting of a query."""
    most = DRIVER_BYTES if settings.driver_bytes is None else settings.driver_bytes
    return {CHOSEN: str(most)}
