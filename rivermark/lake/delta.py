"""The one road to a Delta table: its log is checked before delta-rs or Spark reads by it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaProtocolError

from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.data_file_check import check_data_file, read_as
from rivermark.lake.integrity.log_check import check_log
from rivermark.lake.integrity.log_entry import first_line, table_in
from rivermark.model.errors import TableDamaged

if TYPE_CHECKING:
    # Arrow's datasets import pandas, which takes a second: not before the first query.
    from pyarrow import dataset
    from pyspark.sql import DataFrame, DataFrameReader, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamReader

    from rivermark.lake.table_rows import TableRows


MAPPING: Final = "delta.columnMapping.mode"
FILE_ROWS: Final = 16_384
"""Rows of a data file that are read at once."""
PHYSICAL: Final = "delta.columnMapping.physicalName"
"""Where a column's metadata has the name that its files have for it."""


def delta_table(path: str, version: int | None = None) -> DeltaTable:
    """A table as delta-rs opens it: at that version, or the newest.

    Raises TableDamaged where an entry of the log is missing, empty, cut or changed.
    """
    check_log(path, version)
    return DeltaTable(path, version=version)


def dataset_of(table: DeltaTable) -> TableRows:
    """The rows of an opened version; the checksums of pages are verified where a file has some.

    Files are skipped by statistics that can be trusted (rivermark/lake/table_rows.py). Raises
    DeltaProtocolError for a table that Spark alone can read.
    """
    check_readable(table)
    from rivermark.lake.table_rows import TableRows

    return TableRows(table)


def check_readable(table: DeltaTable) -> None:
    """Refuse a table whose files do not say its rows by themselves.

    delta-rs looks for columns by their names in the table, and finds none where files have others:
    each value would be missing. Raises DeltaProtocolError, which names the feature.
    """
    if "deletionVectors" in (table.protocol().reader_features or ()):
        raise _for_spark(table, "rows that deletion vectors take out (deletionVectors)")
    if table.metadata().configuration.get(MAPPING, "none") == "none":
        return
    renamed = next(_renamed(json.loads(table.schema().to_json())), None)
    if renamed is not None:
        raise _for_spark(table, f"a column {renamed!r} of another name in its files ({MAPPING})")


def _for_spark(table: DeltaTable, what: str) -> DeltaProtocolError:
    return DeltaProtocolError(f"the table {table.table_uri} has {what}: only Spark reads it")


def _renamed(schema: Any) -> Iterator[str]:
    """The columns, and fields within them, that have another name in files."""
    if isinstance(schema, list):
        for each in schema:
            yield from _renamed(each)
    elif isinstance(schema, dict):
        name = schema.get("name")
        if name is not None and schema.get("metadata", {}).get(PHYSICAL, name) != name:
            yield str(name)
        for part in ("fields", "type", "elementType", "keyType", "valueType"):
            yield from _renamed(schema.get(part))


def read_all(table: DeltaTable, columns: Collection[str] = ()) -> pa.Table:
    """All rows of an opened version without partitions, read without Arrow's datasets, nor pandas.

    With `columns` only these, of those that the table has.
    Raises TableDamaged for a data file that is damaged, and as `dataset_of`.
    """
    check_readable(table)
    schema = pa.schema(table.schema().to_arrow())
    if columns:
        schema = pa.schema([field for field in schema if field.name in columns])
    store, folder = filesystem(table.table_uri)
    folder = folder.rstrip("/")
    local = is_local(table.table_uri)
    parts = []
    for name in map(unquote, table.get_add_actions()["path"].to_pylist()):
        if local:
            check_data_file(folder, name)
        with _named(folder, name):
            parts.append(read_as(schema, store, f"{folder}/{name}"))
    return pa.concat_tables([*parts, pa.Table.from_batches([], schema)]).combine_chunks()


def file_batches(folder: str, name: str, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
    """The rows of one data file in the folder or URI of a table, some at a time.

    Raises TableDamaged where it is missing or damaged.
    """
    from pyarrow.parquet import ParquetFile

    store, inside = filesystem(folder)
    inside = inside.rstrip("/")
    if is_local(folder):
        check_data_file(inside, name)
    with (
        _named(inside, name),
        store.open_input_file(f"{inside}/{name}") as content,
        ParquetFile(content, page_checksum_verification=True) as file,
    ):
        for rows in file.iter_batches(batch_size=FILE_ROWS, columns=[*columns], use_threads=False):
            # delta-rs writes texts as views where it writes rows again; Arrow cannot filter these.
            plain = pa.schema(
                [field.with_type(_without_views(field.type)) for field in rows.schema]
            )
            yield rows if plain == rows.schema else rows.cast(plain)


def _without_views(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_list(kind):
        return pa.list_(_without_views(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    return kind


def read_rows(rows: dataset.Dataset, **options: Any) -> pa.Table:
    """The rows as `to_table` reads them. Raises TableDamaged for a data file that is damaged."""
    with damage_named(rows):
        return rows.to_table(**options)


def read_batches(rows: dataset.Dataset, **options: Any) -> Iterator[pa.RecordBatch]:
    """The rows as `to_batches` reads them. Raises as `read_rows`."""
    with damage_named(rows):
        yield from rows.to_batches(**options)


@contextmanager
def damage_named(
    *tables: dataset.Dataset, errors: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """Let a read that fails by a damaged data file say which: Arrow and DuckDB do not.

    Raises TableDamaged for the first file of the tables that cannot be read through.
    """
    try:
        yield
    except (OSError, pa.ArrowException, *errors) as error:
        for table in tables:
            for damage in _damage_in(table):
                raise damage from error
        raise


def _damage_in(table: dataset.Dataset) -> Iterator[TableDamaged]:
    """The data files of a dataset that cannot be read through, each with the reason."""
    noted = getattr(table, "damage", None)
    if noted is not None:
        yield noted
    # Rows of this process have no files.
    for fragment in getattr(table, "get_fragments", list)():
        path = getattr(fragment, "path", None)
        if path is None:
            continue
        folder = getattr(fragment.filesystem, "base_path", "").rstrip("/")
        try:
            with _named(folder, path):
                for _ in fragment.to_batches(batch_readahead=1):
                    pass
        except TableDamaged as damage:
            yield damage


@contextmanager
def _named(folder: str, name: str) -> Iterator[None]:
    """Let a read that fails by a data file say which."""
    path = f"{folder}/{name}"
    try:
        yield
    except FileNotFoundError as error:
        raise TableDamaged.of(table_in(folder), path, "is missing") from error
    except (OSError, pa.ArrowException) as error:
        problem = f"cannot be read ({first_line(error)})"
        raise TableDamaged.of(table_in(folder), path, problem) from error


def read_delta(spark: SparkSession, path: str, version: int | None = None) -> DataFrame:
    """A table as Spark reads it: at that version, or the newest. Raises as `delta_table`."""
    check_log(path, version)
    reader: DataFrameReader = spark.read.format("delta")
    if version is not None:
        reader = reader.option("versionAsOf", version)
    return reader.load(path)


def delta_stream(spark: SparkSession, path: str) -> DataStreamReader:
    """A reader that follows a table's commits. Raises as `delta_table`.

    The host of the query checks each commit that comes later.
    """
    check_log(path)
    return spark.readStream.format("delta")
