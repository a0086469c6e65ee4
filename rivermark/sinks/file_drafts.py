"""Files of rows before they have their names: written by this process, or by tasks of executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING, Final, Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from pyspark.sql import SparkSession

from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.day_predicates import in_days, is_date
from rivermark.lake.filesystem import filesystem
from rivermark.model.json_text import json_text
from rivermark.model.rows import BatchRows, in_pieces
from rivermark.model.table import Table
from rivermark.sinks.python_rows import python_rows

if TYPE_CHECKING:
    from pyarrow import dataset

Format = Literal["parquet", "csv", "jsonl"]
NO_DAY: Final = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Draft:
    """A file, by its name below the folder of drafts and, later, below the sink's."""

    name: str
    rows: int


@dataclass(frozen=True)
class Drafts:
    """The folder or URI of drafts, their format, and the table whose rows they get."""

    folder: str
    kind: Format
    table: Table

    def of(self, rows: BatchRows, name: str) -> list[Draft]:
        """Write the rows, a file a day; those that lie in files by tasks, some files a day."""
        readable, spark = rows.readable(), SparkSession.getActiveSession()
        if isinstance(readable, pa.Table):
            return [*self.write(readable, name)]
        if spark is None:
            return [*self._write(readable, name)]
        task = partial(_by_task, self, name)
        names = arrow_schema(self.table.schema).names
        written = rows.frame(spark).select(*names).mapInArrow(task, "name string, rows long")
        return [Draft(**each) for each in written.toArrow().to_pylist()]

    def write(self, rows: pa.Table, name: str) -> Iterator[Draft]:
        """Write rows of this process, a file a day."""
        from pyarrow import dataset

        schema = arrow_schema(self.table.schema)
        return self._write(dataset.dataset(rows.select(schema.names).cast(schema)), name)

    def _write(self, source: dataset.Dataset, name: str) -> Iterator[Draft]:
        store, path = filesystem(self.folder)
        schema = arrow_schema(self.table.schema)
        for folder, chosen in self._by_day(source):
            store.create_dir(f"{path}/{folder}".rstrip("/"), recursive=True)
            with store.open_output_stream(f"{path}/{folder}{name}") as file:
                written = write_rows(file, self.kind, schema, batches(chosen, schema))
            if written:
                yield Draft(f"{folder}{name}", written)

    def _by_day(self, source: dataset.Dataset) -> Iterator[tuple[str, dataset.Dataset]]:
        if self.table.days is None:
            yield "", source
            return
        column, zone = self.table.days.column, self.table.days.zone
        values = source.to_table(columns=[column])[column]
        if not is_date(self.table):
            values = pc.local_timestamp(values.cast(pa.timestamp("us", zone))).cast(pa.date32())
        for day in sorted(d for d in values.unique().to_pylist() if d is not None):
            yield f"day={day}/", source.filter(in_days(self.table, [day]))
        if values.null_count:
            yield f"day={NO_DAY}/", source.filter(pc.field(column).is_null())


def _by_task(drafts: Drafts, name: str, rows: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write a partition in pieces, under names of their own."""
    stem, kind = name.rsplit(".", 1)
    for piece in in_pieces(rows):
        own = f"{stem}-{uuid4().hex}.{kind}"
        made = [{"name": each.name, "rows": each.rows} for each in drafts.write(piece, own)]
        yield pa.RecordBatch.from_pylist(made, pa.schema({"name": pa.string(), "rows": pa.int64()}))


def batches(source: dataset.Dataset, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows in their order, with the declared types."""
    for batch in source.scanner(use_threads=False).to_batches():
        yield from pa.Table.from_batches([batch]).select(schema.names).cast(schema).to_batches()


def write_rows(
    file: IO[bytes], kind: Format, schema: pa.Schema, rows: Iterator[pa.RecordBatch]
) -> int:
    """Write the rows in the format, and return how many they are."""
    count = 0
    if kind == "jsonl":
        for batch in rows:
            file.writelines(json_text(row) + b"\n" for row in python_rows(batch))
            count += batch.num_rows
        return count
    writer = (
        pa.parquet.ParquetWriter(file, schema)
        if kind == "parquet"
        else pa.csv.CSVWriter(file, schema)
    )
    with writer:
        for batch in rows:
            writer.write_batch(batch)
            count += batch.num_rows
    return count
