"""Parquet files, decoded by Arrow: each row becomes a JSON payload, with nothing lost of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from rivermark.ingest.source.files.stored_file import open_stored
from rivermark.ingest.source.json_rows import json_records
from rivermark.ingest.source.payload import RECORDS, JsonRecords, arrow_records
from rivermark.lake.filesystem import filesystem

ROWS: Final = 16_384
"""Rows that are decoded at once."""
BATCH_BYTES: Final = 8 << 20
"""About so many bytes are decoded at once, where rows are wide."""
TASKS_A_CORE: Final = 4


@dataclass(frozen=True)
class RowGroup:
    """A row group of a file: the piece that a task reads. `first` counts the rows before it."""

    uri: str
    path: str
    number: int
    first: int


def open_parquet(path: str) -> pq.ParquetFile:
    """Open a file; faults of its store are `StoreFault`."""
    store, inside = filesystem(path)
    # INT96 holds times beyond what nanoseconds can, so they are never made nanoseconds.
    return pq.ParquetFile(
        open_stored(store, inside),
        coerce_int96_timestamp_unit="us",
        # Where a writer gave its pages checksums: a flipped bit of a number is a number.
        page_checksum_verification=True,
    )


def parquet_payloads(
    path: str, wanted: Collection[str] | None, groups: Sequence[int] | None = None
) -> Iterator[pa.StringArray]:
    """The rows of a file, or of some of its row groups, as JSON objects; batch after batch."""
    return (records.payloads for records in parquet_records(path, wanted, groups))


def parquet_records(
    path: str, wanted: Collection[str] | None, groups: Sequence[int] | None = None
) -> Iterator[JsonRecords]:
    """The same with the texts of their columns.

    Raises:
        ValueError: a row group has another number of rows than it says; and whatever Arrow raises.
    """
    with open_parquet(path) as file:
        footer = file.metadata
        instants = {
            column.path
            for column in (footer.schema.column(n) for n in range(footer.num_columns))
            if column.physical_type == "INT96"
        }
        for number in range(footer.num_row_groups) if groups is None else groups:
            group = footer.row_group(number)
            a_row = group.total_byte_size // max(group.num_rows, 1)
            rows = max(1, min(ROWS, BATCH_BYTES // max(a_row, 1)))
            read = 0
            for batch in file.iter_batches(batch_size=rows, row_groups=[number]):
                read += batch.num_rows
                yield json_records(batch, wanted, instants)
            if read != group.num_rows:
                raise ValueError(f"row group {number} has {read} rows instead of {group.num_rows}")


def read_parquet(
    spark: SparkSession, paths: Sequence[tuple[str, str]], wanted: Collection[str] | None
) -> DataFrame:
    """The rows of files (URI, path) as the columns that `read_files` documents; a task a group."""
    groups: list[RowGroup] = []
    for uri, path in paths:
        with open_parquet(path) as file:
            first = 0
            for number in range(file.metadata.num_row_groups):
                groups.append(RowGroup(uri, path, number, first))
                first += file.metadata.row_group(number).num_rows

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for part in batch["id"].to_pylist():
                yield from _records(part, groups[part], wanted)

    tasks = max(1, min(len(groups), TASKS_A_CORE * spark.sparkContext.defaultParallelism))
    return spark.range(0, len(groups), 1, tasks).mapInArrow(read, RECORDS)


def _records(
    part: int, group: RowGroup, wanted: Collection[str] | None
) -> Iterator[pa.RecordBatch]:
    place = group.first
    for payloads in parquet_payloads(group.path, wanted, [group.number]):
        yield arrow_records(group.uri, payloads, part, place)
        place += len(payloads)
