"""Pieces of a Delta table's snapshot: data files, all in one or one by one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rivermark.ingest.source.payload import numbered
from rivermark.ingest.source.typed_rows import typed_records
from rivermark.lake.delta import read_batches
from rivermark.model.source import (
    Piece,
    Records,
)

if TYPE_CHECKING:
    from pyarrow import dataset as ds


@dataclass(frozen=True, kw_only=True)
class DataFilesPiece(Piece):
    """Data files of a version. `more` are columns with one value, behind those of the files."""

    files: ds.Dataset
    more: Mapping[str, Any]
    wanted: Collection[str] | None

    def read(self) -> Iterator[Records]:
        """The rows, file after file."""
        first = self.first or 0
        for batch in read_batches(self.files):
            for name, value in self.more.items():
                batch = batch.append_column(name, pa.repeat(value, batch.num_rows))
            yield numbered(self.splits[0], typed_records(batch, self.wanted), first)
            first += batch.num_rows


def cut(
    files: ds.FileSystemDataset, weight: int, most_bytes: int
) -> Iterator[tuple[ds.FileSystemDataset, int]]:
    """The data files as one piece, or one by one, each with its bytes as text."""
    if weight <= most_bytes:
        yield files, weight
        return
    from pyarrow.dataset import FileSystemDataset  # It imports pandas, which takes a second.

    for fragment in files.get_fragments():
        one = FileSystemDataset([fragment], files.schema, files.format, fragment.filesystem)
        yield one, sum(group.total_byte_size for group in fragment.row_groups)
