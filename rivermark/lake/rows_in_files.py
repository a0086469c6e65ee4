"""Rows in files that executors wrote, read in pieces: before a commit names the files, or after."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa

from rivermark.lake.append.by_executors import write_files
from rivermark.lake.append.data_file import Tree, remove_files, rows_of_files
from rivermark.lake.append.table_features import features_for
from rivermark.lake.append.table_files import TableFiles
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.delta import damage_named, read_batches, read_rows
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.model.rows import PIECE, BatchRows, Readable
from rivermark.model.table import Table

if TYPE_CHECKING:
    from pyarrow import dataset
    from pyspark.sql import DataFrame, SparkSession


def stage(lake: Lake, table: Table, rows: DataFrame, name: str, event_time: str | None) -> InFiles:
    """Have executors write rows of a table beside it; what a killed process leaves is removed."""
    folder = f"{lake.staged_runs()}/{name}-{table.name.replace('/', '.')}"
    store, path = filesystem(folder)
    store.create_dir(path, recursive=True)
    files = TableFiles(folder, features_for(arrow_schema(table.schema)), {})
    return InFiles(folder, table, write_files(rows, files, event_time), staged=True)


class _Read(BatchRows):
    """Rows that Arrow reads as a dataset."""

    @abstractmethod
    def readable(self) -> dataset.Dataset:
        """The rows as a dataset, of which nothing is read yet."""

    def count(self) -> int:
        """Their number; conditions read their columns."""
        rows = self.readable()
        with damage_named(rows):
            return int(rows.count_rows())

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, or these columns, in pieces."""
        options: dict[str, Any] = {"batch_size": PIECE}
        options |= {} if columns is None else {"columns": list(columns)}
        # Few are read ahead: a sink is slower than a disk.
        options |= {"use_threads": False, "batch_readahead": 1, "fragment_readahead": 1}
        for batch in read_batches(self.readable(), **options):
            if batch.num_rows:
                yield pa.Table.from_batches([batch])

    def arrow(self) -> pa.Table:
        """All rows in this process."""
        return read_rows(self.readable())


@dataclass(frozen=True)
class InFiles(_Read):
    """Rows of a table in files of a folder or URI, by the actions that add or would add them."""

    folder: str
    table: Table
    adds: Sequence[Tree]
    staged: bool = False
    """Whether the folder holds nothing else."""

    def count(self) -> int:
        """Their number, by the files' statistics."""
        return rows_of_files(self.adds)

    def readable(self) -> dataset.Dataset:
        """The files, by the declared columns: one from before a column was added has none of it."""
        from pyarrow import dataset, fs

        schema = arrow_schema(self.table.schema)
        if not self.adds:
            return dataset.dataset(schema.empty_table())
        store, base = filesystem(self.folder)
        checked = dataset.ParquetFragmentScanOptions(page_checksum_verification=True)
        return dataset.dataset(
            self.names,
            schema,
            format=dataset.ParquetFileFormat(default_fragment_scan_options=checked),
            filesystem=fs.SubTreeFileSystem(base, store),
        )

    def frame(self, spark: SparkSession) -> DataFrame:
        """As Spark reads the files."""
        if not self.adds:
            return spark.createDataFrame([], self.table.schema)
        paths = [f"{self.folder}/{name}" for name in self.names]
        return spark.read.schema(self.table.schema).parquet(*paths)

    def files_in(self, table_path: str) -> list[Tree] | None:
        """The actions, where the files lie in that table's folder."""
        return list(self.adds) if self.folder == table_path else None

    def discard(self) -> None:
        """Remove the files, or the folder that is theirs alone."""
        if not self.staged:
            remove_files(self.folder, self.adds)
            return
        store, path = filesystem(self.folder)
        if store.get_file_info(path).type.name == "Directory":
            store.delete_dir(path)

    @property
    def names(self) -> list[str]:
        """The files' paths inside the folder."""
        return [unquote(each["add"]["path"]) for each in self.adds]


@dataclass(frozen=True)
class StagedRows(_Read):
    """Rows that were staged, perhaps some of them: as Arrow and as Spark reads the same ones."""

    rows: dataset.Dataset
    framed: DataFrame

    def readable(self) -> Readable:
        """As Arrow reads them."""
        return self.rows

    def frame(self, spark: SparkSession) -> DataFrame:
        """As Spark reads them."""
        return self.framed
