"""Computed rows before it is decided what becomes of them, and those that are kept to look at.

A computation that is compared, and perhaps replaces what is published, must run once and must not
hold a table's commit lock meanwhile. So Spark writes its rows to `<lake>/staged/_runs/<id>`, from
where they are compared, and committed, or kept in `<lake>/rehearsals/<id>` as a Delta table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from pyarrow import fs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.backfill.comparison import compare, compare_on_spark
from rivermark.backfill.difference import Difference
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.day_predicates import condition, days_of
from rivermark.lake.delta import dataset_of, read_delta
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.quoting import quoted
from rivermark.lake.sql import spilling_connection
from rivermark.model.stream import Stream
from rivermark.model.table import Table, days_between
from rivermark.operators.finished import cut
from rivermark.quality.duckdb_sql import on_days
from rivermark.runtime.query.recompute import build_range, check_final
from rivermark.runtime.spark.input_size import DRIVER_BYTES

if TYPE_CHECKING:
    from pyarrow import dataset

REHEARSALS: Final = "rehearsals"
FOR_TABLE: Final = "_goes_to_"
"""Prefix of the columns that say for which tables of the stream a row is."""


@dataclass(frozen=True)
class Staged:
    """Computed rows on disk; `tables` are the stream's, in the order of their columns."""

    folder: str
    tables: tuple[Table, ...]

    def rows(self, table: Table) -> dataset.Dataset:
        """The rows of one of the tables."""
        from pyarrow import compute, dataset

        store, path = filesystem(self.folder)
        rows = dataset.dataset(path, filesystem=store, format="parquet")
        return rows.filter(compute.field(self._column(table)))

    @property
    def small(self) -> bool:
        """True if the rows are few enough for this process; else Spark handles them."""
        store, path = filesystem(self.folder)
        files = store.get_file_info(fs.FileSelector(path, recursive=True))
        return sum(file.size or 0 for file in files) <= DRIVER_BYTES

    def ordered(self, table: Table, days: Collection[date]) -> pa.Table:
        """The rows of one of the tables for the days, always in the same order."""
        return ordered_rows(self.rows(table), table, days)

    def compared(
        self, spark: SparkSession, published: DeltaTable, table: Table, first: date, last: date
    ) -> Difference:
        """The rows beside those that are published: by DuckDB, or by Spark where they are many."""
        if self.small:
            return compare(dataset_of(published), self.rows(table), table, first, last)
        before = read_delta(spark, published.table_uri, published.version())
        return compare_on_spark(before, self.frame(spark, table), table, first, last)

    def frame(self, spark: SparkSession, table: Table) -> DataFrame:
        """The rows of one of the tables for Spark."""
        rows = spark.read.parquet(self.folder).where(F.col(self._column(table)))
        return rows.select(*table.schema.fieldNames())

    def _column(self, table: Table) -> str:
        return f"{FOR_TABLE}{self.tables.index(table)}"


@contextmanager
def staged(
    spark: SparkSession,
    lake: Lake,
    name: str,
    stream: Stream,
    first: date,
    last: date,
    versions: Mapping[str, int],
    on_step: Callable[[str], None] = lambda _: None,
) -> Iterator[Staged]:
    """Compute the days, once for all tables of the stream, and keep the rows for a block.

    Where sessions go on at the border of what was read around the days, more is read and the days
    are computed again. Raises as `build_range` and `check_final`.
    """
    folder = f"{lake.staged_runs()}/{name}"
    store, path = filesystem(folder)
    try:
        around: timedelta | None = None
        while True:
            built = build_range(spark, lake, stream, first, last, versions, around)
            by_table(stream, built.rows, first, last).write.mode("overwrite").parquet(folder)
            around = check_final(lake, stream, last, built)
            if around is None:
                break
            on_step(f"reading {around} around the days, since sessions reach so far")
        yield Staged(folder, stream.tables)
    finally:
        if store.get_file_info(path).type.name == "Directory":
            store.delete_dir(path)


def by_table(stream: Stream, built: DataFrame, first: date, last: date) -> DataFrame:
    """The built rows that any table takes, each with a column for every table that does."""
    days = days_between(first, last)
    takes = {}
    for number, output in enumerate(stream.outputs):
        taken = condition(output.table, days)
        if output.where is not None:
            taken = output.where() & taken
        takes[f"{FOR_TABLE}{number}"] = taken
    names = dict.fromkeys(f.name for table in stream.tables for f in table.schema.fields)
    return cut(built, **takes).select(*names, *takes)


def ordered_rows(rows: dataset.Dataset, table: Table, days: Collection[date]) -> pa.Table:
    """The declared columns of the rows in the days, in an order that only their values decide.

    So the same rows make the same file, however Spark's tasks happened to deliver them.
    """
    names = [f.name for f in table.schema.fields]
    lead = dict.fromkeys([days_of(table).column, *table.keys, *names])
    order = ", ".join(f"{quoted(name)} NULLS FIRST" for name in lead)
    columns = ", ".join(quoted(name) for name in names)
    sql = f"SELECT {columns} FROM computed WHERE {on_days(table, days)} ORDER BY {order}"  # noqa: S608
    with spilling_connection({"computed": rows}) as duckdb:
        ordered: pa.Table = duckdb.sql(sql).to_arrow_table()
    return ordered


def rehearsal_path(lake: Lake, name: str, table: Table) -> str:
    """The place where a rehearsal keeps its rows of a table."""
    return f"{lake.root}/{REHEARSALS}/{name}/{table.name}"


def keep_rehearsed(
    lake: Lake, name: str, table: Table, rows: pa.Table, metadata: dict[str, Any]
) -> str:
    """Write the rows of a rehearsal as a table of their own; returns its path."""
    path = rehearsal_path(lake, name, table)
    write_deltalake(
        path,
        rows,
        mode="overwrite",
        description=table.description,
        commit_properties=commit_properties(metadata),
    )
    return path


def remove_old(lake: Lake, before: datetime) -> list[str]:
    """Remove rehearsals, and what a killed run left staged, older than that moment."""
    removed = []
    for folder in (f"{lake.root}/{REHEARSALS}", lake.staged_runs()):
        store, path = filesystem(folder)
        for info in store.get_file_info(fs.FileSelector(path, allow_not_found=True)):
            if info.type == fs.FileType.Directory and info.mtime and info.mtime < before:
                store.delete_dir(info.path)
                removed.append(info.base_name)
    return removed
