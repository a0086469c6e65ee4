"""Rows of a table as Spark's `collect` gives them, read without a Spark job.

A job over a small table takes a second on a busy machine, and the tests look at hundreds. That
Spark reads the tables is shown by the streams that do.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from pyspark.sql import Row


def delta_rows(path: str, *columns: str) -> list[Row]:
    """All rows of a table by these columns (default: all); times are local and have no zone."""
    found = DeltaTable(path).to_pyarrow_table(columns=[*columns] or None)
    make = Row(*found.column_names)
    values = [[_collected(v, c.type) for v in c.to_pylist()] for c in found.columns]
    return [make(*row) for row in zip(*values, strict=True)]


def _collected(value: Any, kind: pa.DataType) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone().replace(tzinfo=None)
    if value is not None and pa.types.is_map(kind):
        return dict(value)
    return value
