"""Rows of one table on their way to its sinks: their place is chosen once, and no sink asks.

Few rows are an Arrow table of the driver. Many are files that executors wrote: what a sink does
with them it does piece by piece, so that no batch has to fit into the driver's memory.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from pyarrow import dataset
    from pyspark.sql import DataFrame, SparkSession

PIECE: Final = 200_000
"""Rows of a piece: what a sink holds at a time."""

Readable: TypeAlias = "pa.Table | dataset.Dataset"
"""Rows as DuckDB reads them."""
Rows: TypeAlias = "BatchRows | pa.Table"
"""What a sink is given; `as_rows` makes one kind of it."""


class BatchRows(ABC):
    """The rows of one batch or replacement, in the order in which they were computed."""

    @abstractmethod
    def count(self) -> int:
        """Their number, without reading them."""

    @abstractmethod
    def readable(self) -> Readable:
        """The rows as DuckDB and Arrow read them; those in files are not read yet."""

    @abstractmethod
    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, or these columns of them, so many at a time that memory stays bounded."""

    @abstractmethod
    def arrow(self) -> pa.Table:
        """All rows in this process: for what cannot be done by pieces."""

    @abstractmethod
    def frame(self, spark: SparkSession) -> DataFrame:
        """The rows as Spark reads them."""

    def plain(self, spark: Callable[[], SparkSession]) -> pa.Table | DataFrame:
        """The rows for one commit: of the driver where they are few, else of executors."""
        return self.frame(spark())

    def discard(self) -> None:  # noqa: B027 - of the driver's rows nothing is left
        """Remove files of theirs that no commit names; only where none does."""

    def files_in(self, table_path: str) -> list[dict[str, Any]] | None:
        """The log actions that add the rows' files, where they lie in that table's folder."""
        return None


@dataclass(frozen=True)
class Collected(BatchRows):
    """Few enough rows for the driver."""

    table: pa.Table

    def count(self) -> int:
        """Their number."""
        return int(self.table.num_rows)

    def readable(self) -> Readable:
        """As DuckDB and Arrow read them."""
        return self.table

    def pieces(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """The rows, or these columns, in pieces."""
        chosen = self.table if columns is None else self.table.select(list(columns))
        for start in range(0, chosen.num_rows, PIECE):
            yield chosen.slice(start, PIECE)

    def arrow(self) -> pa.Table:
        """All rows in this process."""
        return self.table

    def frame(self, spark: SparkSession) -> DataFrame:
        """As Spark reads them."""
        return spark.createDataFrame(self.table)

    def plain(self, spark: Callable[[], SparkSession]) -> pa.Table | DataFrame:
        """The rows for one commit."""
        return self.table


def as_rows(rows: Rows) -> BatchRows:
    """Rows as a sink works with them, whatever it was given."""
    return rows if isinstance(rows, BatchRows) else Collected(rows)


def in_pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Rows that come to a task in small batches, in pieces."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        held.append(batch)
        count += batch.num_rows
        if count >= PIECE:
            yield pa.Table.from_batches(held)
            held, count = [], 0
    if count:
        yield pa.Table.from_batches(held)
