"""Replacing whole days of a table in one commit."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame

from rivermark.errors import RivermarkError
from rivermark.lake.checksum import write_checksum
from rivermark.lake.days import predicate, spark_predicate
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.note import note, noted
from rivermark.lake.table import Table


def replace_days(
    lake: Lake,
    table: Table,
    rows: DataFrame | pa.Table,
    days: Collection[date],
    metadata: dict[str, Any],
) -> int:
    """Put `rows` in place of all rows of `days` and count them; other days are never touched.

    The rows must lie in those days (Delta refuses others). Doing it again changes nothing. Readers
    by stream skip the commit. An Arrow table is committed from here, without a Spark job.
    """
    if not days:
        raise RivermarkError(
            f"table '{table.name}': no days were given to replace; nothing was done"
        )
    path = lake.path(table)
    with commit_lock(path):
        if isinstance(rows, pa.Table):
            found = DeltaTable(path)
            write_deltalake(
                found,
                rows,
                mode="overwrite",
                predicate=predicate(table, days),
                commit_properties=noted(metadata),
            )
            write_checksum(path, found.version())
            return int(rows.num_rows)
        where = spark_predicate(table, days)
        inside = rows.where(where).coalesce(1)
        writer = inside.write.format("delta").mode("overwrite").option("replaceWhere", where)
        writer.option("userMetadata", note(metadata)).save(path)
        newest = CommitLog(path).latest()
        return newest.rows or 0 if newest else 0
