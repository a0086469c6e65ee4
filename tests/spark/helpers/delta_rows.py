"""Rows of a table as Spark's `collect` gives them, read without a Spark job.

A job over a small table takes a second on a busy machine, and the tests look at hundreds. That
Spark reads the tables is shown by the streams that do.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import Row

from rivermark import Table
from rivermark.lake.lake import Lake

OF_THE_WAY: Final = frozenset(
    ("_file", "_row", "_ingested_at", "_landed_at", "_ingest_batch", "_arrival", "payload")
)
"""Columns that depend on the way by which rows came."""


def delta_rows(path: str, *columns: str) -> list[Row]:
    """All rows of a table by these columns (default: all); times are local and have no zone."""
    found = DeltaTable(path).to_pyarrow_table(columns=[*columns] or None)
    make = Row(*found.column_names)
    values = [[_collected(v, c.type) for v in c.to_pylist()] for c in found.columns]
    return [make(*row) for row in zip(*values, strict=True)]


def published_rows(lake: Lake, tables: Iterable[Table]) -> dict[str, list[str]]:
    """The rows of tables, in order, without what depends on the way by which they came."""
    rows = {}
    for table in tables:
        kept = [name for name in table.schema.fieldNames() if name not in OF_THE_WAY]
        rows[table.name] = sorted(repr(tuple(r)) for r in delta_rows(lake.path(table), *kept))
    return rows


def _collected(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    if value is not None and pa.types.is_map(kind):
        return dict(value)
    return value
