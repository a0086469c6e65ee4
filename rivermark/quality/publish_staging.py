"""Rows that are too many for the driver, written once to be audited before they are published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession

from rivermark.lake.delta import dataset_of, delta_table, read_delta
from rivermark.lake.lake import Lake
from rivermark.model.table import Table
from rivermark.quality.errors import PublicationBlocked
from rivermark.quality.publish_gate import forget

if TYPE_CHECKING:
    from pyarrow import dataset


@contextmanager
def staged(
    spark: SparkSession, lake: Lake, table: Table, rows: DataFrame
) -> Iterator[tuple[DataFrame, dataset.Dataset]]:
    """The rows as they were staged: for Spark, which publishes them, and for the audit.

    Computed once, by executors. Removed afterwards, unless they were refused; what a killed process
    left is overwritten by the next.
    """
    path = lake.staged(table)
    writer = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
    writer.save(path)
    try:
        yield read_delta(spark, path), dataset_of(delta_table(path))
    except PublicationBlocked:
        raise
    except BaseException:
        forget(lake, table)
        raise
    forget(lake, table)
