"""Rows as objects that JSON can hold."""

from __future__ import annotations

import re
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from rivermark.model.json_numbers import with_json_numbers
from rivermark.sinks.python_rows import iso_8601, python_rows

FLOATS: Final = re.compile(r"\b(halffloat|float|double)\b")
"""How the name of a nested type says that it holds floating-point numbers."""


def json_rows(rows: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as Python objects; NaN and the infinities, which JSON lacks, are texts.

    So are times that Python has not, as Spark writes them.
    """
    objects = python_rows(rows, iso_8601)
    columns = zip(rows.column_names, rows.columns, strict=True)
    if odd := [name for name, column in columns if _may_lack_numbers(column)]:
        for row in objects:
            row.update((name, with_json_numbers(row[name])) for name in odd)
    return objects


def _may_lack_numbers(column: pa.Array | pa.ChunkedArray) -> bool:
    if types.is_floating(column.type):
        return not pc.all(pc.is_finite(column), min_count=0).as_py()
    return types.is_nested(column.type) and FLOATS.search(str(column.type)) is not None
