"""Bounds that delta-rs must not write: of tables that hold NaN or infinity.

Its bounds leave NaN out, and Spark, to which it is the greatest value, skips such files for
`v = 'NaN'` and for `v > 1`. As by our own writer (rivermark/lake/append/data_file.py) the files of
such a table get no bounds at all: where one column alone has none, delta-rs's `to_pyarrow_dataset`
loses the file's rows.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import ColumnProperties, DeltaTable, WriterProperties

from rivermark.lake.append.data_file import column_at, leaves
from rivermark.lake.statistics import states_bounds

UNBOUNDED: Final = WriterProperties(
    compression="SNAPPY",
    default_column_properties=ColumnProperties(statistics_enabled="NONE"),
)

Options = dict[str, Any]
"""Arguments of delta-rs's writing methods beside those of the commit; empty for its own way."""


def writer_options(delta: DeltaTable, rows: pa.Table | None = None) -> Options:
    """Options by which delta-rs may write these rows together with rows that the table has.

    Those are known by their files: one without bounds may hold such a value.
    """
    empty = pa.schema(delta.schema().to_arrow()).empty_table()
    floats = [
        path for path in leaves(empty.schema) if pa.types.is_floating(column_at(empty, path).type)
    ]
    if not floats:
        return {}
    options = {} if rows is None else options_for(rows)
    if options:
        return options
    files = pa.table(delta.get_add_actions(flatten=True))
    bounded = all(states_bounds(files, ".".join(path)) for path in floats)
    return {} if bounded else {"writer_properties": UNBOUNDED}


def options_for(rows: pa.Table) -> Options:
    """Options by which delta-rs may write these rows alone."""
    unbounded = any(_is_unbounded(column_at(rows, path)) for path in leaves(rows.schema))
    return {"writer_properties": UNBOUNDED} if unbounded else {}


def _is_unbounded(column: pa.ChunkedArray) -> bool:
    if not pa.types.is_floating(column.type):
        return False
    return bool(pc.any(pc.invert(pc.is_finite(column))).as_py())
