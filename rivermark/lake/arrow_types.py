"""The Arrow types of a table's columns."""

from __future__ import annotations

import pyarrow as pa
from deltalake import Schema
from pyspark.sql.types import DataType, StructField, StructType


def arrow_schema(schema: StructType) -> pa.Schema:
    """The Arrow schema of rows with these columns, as a Delta table keeps them.

    Timestamps are of microseconds in UTC; texts, lists and maps are those with 32-bit offsets.
    """
    return pa.schema(Schema.from_json(schema.json()).to_arrow())


def arrow_type(kind: DataType) -> pa.DataType:
    """The Arrow type of a column of this type."""
    return arrow_schema(StructType([StructField("column", kind)])).field(0).type
