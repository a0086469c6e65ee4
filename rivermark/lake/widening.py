"""Columns that a declaration makes wider: the rows that are there are written again, once.

A sum that has no room is given some that way. Delta's own type widening would leave the files as
they are, and only Spark could read them then.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import DataType, DecimalType, StructType

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import dataset_of, read_batches
from rivermark.lake.unbounded import writer_options

WIDENED: Final = "widened"
"""Key of a commit's metadata: the columns whose type it made wider."""


def is_wider(declared: DataType, on_disk: DataType) -> bool:
    """True if a type is a decimal with more digits before the point, and as many behind it."""
    if not isinstance(declared, DecimalType) or not isinstance(on_disk, DecimalType):
        return False
    return declared.scale == on_disk.scale and declared.precision > on_disk.precision


def widen_columns(table: DeltaTable, schema: pa.Schema, names: list[str]) -> None:
    """Write the rows of an opened table with these columns of the schema in place of its own.

    One commit, which readers by stream skip; the caller holds the table's commit lock.
    """
    of_disk = pa.schema(table.schema().to_arrow())
    fields = [schema.field(f.name) if f.name in names else f for f in of_disk]
    wider = pa.schema(fields)
    rows = (
        part
        for batch in read_batches(dataset_of(table))
        for part in pa.Table.from_batches([batch]).cast(wider).to_batches()
    )
    write_deltalake(
        table,
        pa.RecordBatchReader.from_batches(wider, rows),
        mode="overwrite",
        schema_mode="overwrite",
        commit_properties=commit_properties({WIDENED: names}),
        **writer_options(table),
    )
    write_checksum(table.table_uri, table.version())


def widened_columns(declared: StructType, on_disk: StructType) -> list[str]:
    """The columns that are wider in the declaration."""
    return [
        field.name
        for field in declared.fields
        if field.name in on_disk.names and is_wider(field.dataType, on_disk[field.name].dataType)
    ]
