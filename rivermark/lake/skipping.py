"""By which columns the files of a table may be skipped when Arrow reads it.

delta-rs's `to_pyarrow_dataset` makes conditions of all statistics. It loses rows of files without
the bound of a column, its own files with infinity included, and takes a column of one number and
NaN for that number alone.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

SKIPPING: Final = (
    pa.types.is_integer,
    pa.types.is_temporal,
    pa.types.is_decimal,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
)
"""Types by whose bounds files are skipped: those in which every value lies between both."""


FAR: Final = 2**57
"""Microseconds since 1970 (year 6536) from which on delta-rs forgets that bounds of other writers
are cut to milliseconds."""


def skipping_columns(delta: DeltaTable) -> pa.Schema:
    """The columns by which files may be skipped: every file that has bounds at all has theirs.

    Those by which a table is partitioned are among them, whose values no file holds.
    """
    files = pa.table(delta.get_add_actions())
    partitions = delta.metadata().partition_columns
    schema = pa.schema(delta.schema().to_arrow())
    return pa.schema([field for field in schema if _can_skip(field, files, partitions)])


def _can_skip(field: pa.Field, files: pa.Table, partitions: list[str]) -> bool:
    """Whether no file that tells bounds lacks those of a column of which it has values."""
    if field.name in partitions:
        return True
    if not any(is_kind(field.type) for is_kind in SKIPPING) or "min" not in files.column_names:
        return False
    smallest, largest, nulls = (
        pc.struct_field(files[name], place)
        if name in files.column_names
        and (place := files[name].type.get_field_index(field.name)) >= 0
        else pa.nulls(files.num_rows)
        for name in ("min", "max", "null_count")
    )
    if pa.types.is_timestamp(field.type) and pc.any(_is_far(largest)).as_py():
        return False
    lacking = pc.and_(
        pc.or_(pc.is_valid(files["min"]), pc.is_valid(files["max"])),
        pc.or_(pc.is_null(smallest), pc.is_null(largest)),
    )
    empty = pc.fill_null(pc.equal(nulls, files["num_records"]), False)
    return not pc.any(pc.and_not(lacking, empty)).as_py()


def _is_far(bounds: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.greater_equal(bounds.cast(pa.timestamp("us")).cast(pa.int64()), FAR)
