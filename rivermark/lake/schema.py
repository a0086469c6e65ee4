"""Tables come into being with their declared schema; they only grow, by columns or by digits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable, Schema, write_deltalake
from deltalake.schema import Field as DeltaField
from pyspark.sql.types import DataType, DecimalType, StructType

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import dataset_of, delta_table, read_batches
from rivermark.lake.durable import sync_in
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock, sync_commits
from rivermark.lake.retention import retention_of, retention_properties
from rivermark.lake.unbounded import writer_options
from rivermark.model.contract import INGEST_BATCH
from rivermark.model.errors import TableSchemaMismatch
from rivermark.model.table import Table
from rivermark.model.watermark import WATERMARK_AFTER

BOUNDED: Final = 12
"""Columns with statistics, from the first."""
PROPERTIES: Final = {
    "delta.checkpointInterval": "50",
    "delta.dataSkippingNumIndexedCols": str(BOUNDED),
}
"""A table checkpoint each 50 commits instead of 10, because each is a pause of the stream. How long
old versions are kept follows from the retention (rivermark/lake/retention.py)."""


REMOVED: Final = "no longer declared, or added by another tool"


def _bounded_columns(table: Table) -> dict[str, str]:
    """Statistics by name where columns that are looked for stand behind the first ones.

    These are the planned batch, by which the newest rows are found in two files of many thousand,
    and the times that move the watermarks of streams that read the table.
    """
    names = table.schema.fieldNames()
    wanted = (table.event_time, INGEST_BATCH, WATERMARK_AFTER.name)
    more = [name for name in names[BOUNDED:] if name in wanted]
    if not more or not all(re.fullmatch(r"\w+", name, re.ASCII) for name in names[:BOUNDED]):
        return {}
    return {"delta.dataSkippingStatsColumns": ",".join([*names[:BOUNDED], *more])}


def create_table(lake: Lake, table: Table) -> None:
    """Create the table, or add the columns and digits of decimals that its declaration gained.

    Written by delta-rs, which needs no JVM: forty tables take a second instead of a quarter hour of
    Spark jobs. Raises TableSchemaMismatch for any other difference between disk and declaration.
    """
    path = lake.path(table)
    if not lake.exists(table):
        DeltaTable.create(
            path,
            schema=Schema.from_json(table.schema.json()),
            mode="ignore",
            name=table.name.replace("/", "."),
            description=table.description,
            configuration={
                **PROPERTIES,
                **_bounded_columns(table),
                **retention_properties(retention_of(lake, table)),
                **table.properties,
            },
        )
        sync_commits(path, -1)
        store, folder = filesystem(path)
        _, root = filesystem(lake.root)
        # With the names of the folders on the way.
        within = [place for place in Path(folder).parents if place.is_relative_to(root)]
        sync_in(store, [*map(str, within), str(Path(root).parent)])
    delta = delta_table(path)
    write_checksum(path, delta.version())
    on_disk = StructType.fromJson(_json(delta))
    added = new_columns(table, on_disk)
    if widened := widened_columns(table.schema, on_disk):
        with commit_lock(path):
            widen_columns(delta, arrow_schema(table.schema), widened)
    if added:
        declared = Schema.from_json(StructType([table.schema[name] for name in added]).json())
        fields: list[DeltaField] = list(declared.fields)
        with commit_lock(path):
            delta.alter.add_columns(fields)
            write_checksum(path, delta.version())


def new_columns(table: Table, schema: StructType) -> list[str]:
    """Columns that the declaration has and the table lacks; raises on every other difference."""
    on_disk = {f.name: f.dataType for f in schema.fields}
    declared = {f.name: f.dataType for f in table.schema.fields}
    removed = [name for name in on_disk if name not in declared]
    retyped = [
        f"{name}: {on_disk[name].simpleString()} on disk, {kind.simpleString()} declared"
        for name, kind in declared.items()
        if name in on_disk
        and not same_type(on_disk[name], kind)
        and not is_wider(kind, on_disk[name])
    ]
    if removed or retyped:
        raise TableSchemaMismatch(
            f"table '{table.name}' on disk differs from its declaration: "
            f"{'; '.join([*(f'{n}: {REMOVED}' for n in removed), *retyped])}. "
            "Undo the change, declare a column that another tool added, or give the new shape a "
            "new table name and rebuild it."
        )
    return [name for name in declared if name not in on_disk]


def same_type(left: DataType, right: DataType) -> bool:
    """Returns True if two types are one, whatever they say about nulls."""
    return left.simpleString() == right.simpleString()


def _json(table: DeltaTable) -> dict[str, object]:
    import json

    schema: dict[str, object] = json.loads(table.schema().to_json())
    return schema


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
