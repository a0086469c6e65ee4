"""Jobs over pieces of splits: each task reads its own where they lie, and writes data files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import msgspec
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from rivermark.ingest.batch.chunks import (
    Chunk,
    ChunkWriter,
    PiecesTask,
    RawTask,
    SplitsUnreadable,
    gathered,
)
from rivermark.ingest.lines import COLUMNS
from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.parse.rules import with_column_rules
from rivermark.lake.dictionary_texts import as_texts
from rivermark.model.source import Piece

Batches = Iterator[pa.RecordBatch]
CHUNK: Final = "chunk string"
SENT_ROWS: Final = 10_000
"""Rows that Spark is handed at once where it asks rules of its own."""


Task = PiecesTask | RawTask
Result = TypeVar("Result")


@dataclass(frozen=True)
class Executors:
    """Spark's tasks for the batches of one contract."""

    spark: SparkSession
    parser: ContractParser

    def written(self, tasks: Sequence[Task], writer: ChunkWriter) -> list[Chunk]:
        """Let each task parse its lines and write their rows.

        Rules that are Spark columns are asked between two passes of the rows through Python.
        """
        parser = self.parser
        if parser.all_in_sql:

            def write(n: int) -> list[Chunk]:
                return [*written_chunks(tasks[n].parsed(parser), writer)]

            return [chunk for own in each_by_task(self.spark, len(tasks), write) for chunk in own]
        texts = self._with_column_rules(tasks, writer)
        return [msgspec.json.decode(text, type=Chunk) for text in texts]

    def _with_column_rules(self, tasks: Sequence[Task], writer: ChunkWriter) -> list[str]:
        """Chunks as texts."""
        parser = self.parser

        def parse(batches: Batches) -> Batches:
            for batch in batches:
                for n in batch["id"].to_pylist():
                    for parsed in tasks[n].parsed(parser):
                        rows = as_texts(parsed.select(columns.names))
                        yield from rows.to_batches(max_chunksize=SENT_ROWS)

        def write(batches: Batches) -> Batches:
            rows = (pa.Table.from_batches([batch]) for batch in batches)
            for chunk in written_chunks(gathered(rows), writer):
                yield pa.record_batch({"chunk": [msgspec.json.encode(chunk).decode()]})

        columns = StructType([*COLUMNS, *parser.columns])
        numbers = self.spark.range(0, len(tasks), 1, max(len(tasks), 1))
        rows = with_column_rules(numbers.mapInArrow(parse, columns), parser.contract)
        texts: list[str] = rows.mapInArrow(write, CHUNK).toArrow()["chunk"].to_pylist()
        return texts


def each_by_task(
    spark: SparkSession, count: int, function: Callable[[int], Result]
) -> list[Result]:
    """The results of a function of each number below `count`, each by a task of its own.

    As plain tasks: what a query of Spark SQL plans and sends in Arrow for them took as much as to
    parse 100,000 lines.
    """
    numbers = spark.sparkContext.parallelize(range(count), count) if count else None
    return [] if numbers is None else numbers.map(function).collect()


def numbered(spark: SparkSession, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces, each with the number of records before it in its split."""
    following = {piece.splits[0] for piece in pieces if piece.first is None}
    counted = [piece for piece in pieces if piece.splits[0] in following]
    if not counted:
        return [*pieces]

    lines = each_by_task(spark, len(counted), lambda n: counted[n].count())
    behind: dict[str, int] = {}
    first: dict[int, int] = {}
    for n, piece in enumerate(counted):
        first[id(piece)] = behind.get(piece.splits[0], 0)
        behind[piece.splits[0]] = first[id(piece)] + lines[n]
    return [replace(p, first=first[id(p)]) if id(p) in first else p for p in pieces]


def shared(pieces: Iterable[Piece], most_bytes: int) -> list[list[Piece]]:
    """Pieces that follow each other, together for one task up to so many bytes."""
    tasks: list[list[Piece]] = []
    size = 0
    for piece in pieces:
        if not tasks or size + piece.weight > most_bytes:
            tasks.append([])
            size = 0
        tasks[-1].append(piece)
        size += piece.weight
    return tasks


def written_chunks(parsed: Iterable[pa.Table], writer: ChunkWriter) -> Iterator[Chunk]:
    """Write parsed lines; each chunk, or why a piece cannot be read."""
    try:
        for rows in parsed:
            yield writer.written(rows)
    except SplitsUnreadable as error:
        yield Chunk(unreadable=error.splits)
