"""Types of Arrow by their names in DuckDB."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

NAMES: Final = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float32(): "FLOAT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
    pa.large_string(): "VARCHAR",
    pa.binary(): "BLOB",
    pa.date32(): "DATE",
    pa.timestamp("us", "UTC"): "TIMESTAMP WITH TIME ZONE",
    pa.timestamp("us"): "TIMESTAMP",
}


def sql_type(kind: pa.DataType) -> str:
    """The name of a type.

    Raises:
        TypeError: for a list, a struct, and other types that no field has a reader of.
    """
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision},{kind.scale})"
    if kind not in NAMES:
        raise TypeError(f"no condition has values of type {kind}")
    return NAMES[kind]
