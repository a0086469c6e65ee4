"""Parquet files, decoded by Arrow: each row keeps its types, and has a payload with all of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import pyarrow.parquet as pq

from rivermark.ingest.source.files.stored_file import open_stored
from rivermark.ingest.source.payload import TypedRecords
from rivermark.ingest.source.typed_rows import typed_records
from rivermark.lake.filesystem import filesystem

ROWS: Final = 16_384
"""Rows that are decoded at once."""
BATCH_BYTES: Final = 8 << 20
"""About so many bytes are decoded at once, where rows are wide."""


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


def parquet_records(
    path: str, wanted: Collection[str] | None, groups: Sequence[int] | None = None
) -> Iterator[TypedRecords]:
    """The rows of a file, or of some of its row groups, batch after batch.

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
                yield typed_records(batch, wanted, instants)
            if read != group.num_rows:
                raise ValueError(f"row group {number} has {read} rows instead of {group.num_rows}")


def row_groups(path: str, most: float) -> Iterator[tuple[tuple[int, ...], int, float]]:
    """Row groups that follow each other, up to this share of the file's rows, or one of them.

    Each with the number of rows before it, and its share.
    """
    with open_parquet(path) as file:
        counts = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    total = max(sum(counts), 1)
    groups: list[int] = []
    first = rows = 0
    for number, count in enumerate(counts):
        if groups and (rows + count) / total > most:
            yield tuple(groups), first, rows / total
            groups, first, rows = [], first + rows, 0
        groups.append(number)
        rows += count
    yield tuple(groups), first, rows / total
