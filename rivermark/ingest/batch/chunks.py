"""Parts of a batch in a task: read and parsed there, and written as data files of the tables.

A task does what the driver does with a small batch; in the place of a commit it returns what the
driver needs to make one of all tasks' files. Nothing here knows of Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.batch.arrow_batch import RAW_COLUMNS, ArrowBatch
from rivermark.ingest.batch.base import Kind, RowShape, SplitStatistics
from rivermark.ingest.lines import LINES, KnownSplits, parsed_records, slices_of
from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.watermark import Bounds
from rivermark.lake.append.data_file import Tree
from rivermark.lake.append.table_files import TableFiles
from rivermark.lake.delta import dataset_of, delta_table, file_batches
from rivermark.model.errors import RivermarkError
from rivermark.model.source import Piece, Records

CHUNK_BYTES: Final = 64 << 20
"""A task holds parsed lines of about so many bytes, and writes them as a file of each table."""
PARSED_BYTES: Final = 16 << 20
"""Bytes of lines that are parsed together: what is made of them stays near the processor."""


class Chunk(msgspec.Struct):
    """Lines of a batch that were written: the action of each file, and the figures of each split.

    `marked` are late rows and rows ahead of the stream, where bounds were known. `unreadable` has
    the error of each split that could not be read.
    """

    files: dict[Kind, Tree] = {}
    splits: dict[str, SplitStatistics] = {}
    marked: dict[str, tuple[int, int]] = {}
    unreadable: dict[str, str] = {}


@dataclass(frozen=True)
class ChunkWriter:
    """Writes parsed lines as data files of some of the tables. It may be pickled.

    Without `bounds` it is not known yet which rows are late; of those with which they are known
    each goes where it belongs.
    """

    shape: RowShape
    tables: Mapping[Kind, TableFiles]
    bounds: Mapping[str, Bounds] | None = None

    def written(self, parsed: pa.Table) -> Chunk:
        """Write a file of each kind that there are rows of."""
        batch = ArrowBatch(parsed, self.shape)
        marked = {} if self.bounds is None else dict(batch.mark(self.bounds))
        files = {
            kind: add
            for kind, table in self.tables.items()
            for add in table.write(batch.rows(kind))
        }
        return Chunk(files, dict(batch.statistics()), marked)


class SplitsUnreadable(Exception):
    """Splits that cannot be read or parsed: the error of each, by its name."""

    def __init__(self, splits: Iterable[str], error: Exception) -> None:
        own = isinstance(error, RivermarkError)
        self.splits = dict.fromkeys(
            splits, str(error) if own else f"{type(error).__name__}: {error}"
        )
        super().__init__(*self.splits.values())


@dataclass(frozen=True)
class PiecesTask:
    """Pieces for one task, and what is known of their splits."""

    pieces: Sequence[Piece]
    known: KnownSplits

    def parsed(self, parser: ContractParser) -> Iterator[pa.Table]:
        """The lines, parsed as many at a time as a task may hold.

        Raises:
            SplitsUnreadable: which, and why.
        """
        return gathered(self._parsed(lines, parser) for lines in self._lines())

    def _lines(self) -> Iterator[list[Records]]:
        """The records, as many at a time as are parsed together."""
        held: list[Records] = []
        size = 0
        for piece in self.pieces:
            for records in _read(piece):
                for part in slices_of(records, PARSED_BYTES):
                    if held and size + part.rows.nbytes > PARSED_BYTES:
                        yield held
                        held, size = [], 0
                    held.append(part)
                    size += part.rows.nbytes
        if held:
            yield held

    def _parsed(self, held: Sequence[Records], parser: ContractParser) -> pa.Table:
        try:
            return parsed_records(held, self.known, parser)
        except RivermarkError as error:
            # A rule that cannot be computed of a row.
            splits = dict.fromkeys(name for records in held for name in records.splits)
            raise SplitsUnreadable(splits, error) from error


@dataclass(frozen=True)
class RawTask:
    """A data file of the raw table, of which the rows of some planned batches are parsed again."""

    folder: str
    name: str
    first: int
    last: int

    def parsed(self, parser: ContractParser) -> Iterator[pa.Table]:
        """The rows, parsed as many at a time as a task may hold."""
        return (parser.parse(rows) for rows in gathered(self.lines()))

    def lines(self) -> Iterator[pa.Table]:
        """The rows as the parser takes them: none of them is a header."""
        for rows in file_batches(self.folder, self.name, RAW_COLUMNS):
            batch = rows["_ingest_batch"]
            own = rows.filter(
                pc.and_(pc.greater_equal(batch, self.first), pc.less_equal(batch, self.last))
            )
            # A file of an older release lacks columns that were added since.
            yield pa.table(
                [
                    own[field.name].cast(field.type)
                    if field.name in own.schema.names
                    else pa.nulls(own.num_rows, field.type)
                    for field in LINES
                ],
                schema=LINES,
            )


def raw_tasks(folder: str, first: int, last: int) -> list[RawTask]:
    """Tasks for the rows of planned batches in the raw table of that folder or URI."""
    batch = pc.field("_ingest_batch")
    files = dataset_of(delta_table(folder)).get_fragments((batch >= first) & (batch <= last))
    return [RawTask(folder, file.path, first, last) for file in files]


def _read(piece: Piece) -> Iterator[Records]:
    try:
        yield from piece.read()
    except Exception as error:
        # A decoder raises anything over damaged bytes; the driver finds out what it means.
        raise SplitsUnreadable(piece.splits, error) from error


def gathered(parts: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Rows that come in small parts, as many at a time as a task may hold."""
    held: list[pa.Table] = []
    size = 0
    for part in parts:
        if held and size + part.nbytes > CHUNK_BYTES:
            yield pa.concat_tables(held)
            held, size = [], 0
        held.append(part)
        size += part.nbytes
    if held:
        yield pa.concat_tables(held)
