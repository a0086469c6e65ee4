"""Jobs over pieces of splits: each task reads its own where they lie, and writes data files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from rivermark.ingest.batch.chunks import (
    Chunk,
    ChunkWriter,
    PiecesTask,
    RawTask,
    SplitsUnreadable,
    gathered,
)
from rivermark.ingest.lines import LINES
from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.parse.rules import with_column_rules
from rivermark.model.source import Piece

Batches = Iterator[pa.RecordBatch]
CHUNK: Final = "chunk string"
SENT_ROWS: Final = 10_000
"""Rows that Spark is handed at once where it asks rules of its own."""


Task = PiecesTask | RawTask


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

        def write(batches: Batches) -> Batches:
            for n in _numbers(batches):
                yield from written_chunks(tasks[n].parsed(parser), writer)

        job = _over(self.spark, len(tasks))
        if parser.all_in_sql:
            job = job.mapInArrow(write, CHUNK)
        else:
            job = self._with_column_rules(job, tasks, writer)
        texts = job.toArrow()["chunk"].to_pylist()
        return [msgspec.json.decode(text, type=Chunk) for text in texts]

    def _with_column_rules(
        self, numbers: DataFrame, tasks: Sequence[Task], writer: ChunkWriter
    ) -> DataFrame:
        parser = self.parser

        def parse(batches: Batches) -> Batches:
            for n in _numbers(batches):
                for parsed in tasks[n].parsed(parser):
                    yield from parsed.select(columns.names).to_batches(max_chunksize=SENT_ROWS)

        def write(batches: Batches) -> Batches:
            rows = (pa.Table.from_batches([batch]) for batch in batches)
            yield from written_chunks(gathered(rows), writer)

        columns = StructType([*from_arrow_schema(LINES), *parser.columns])
        rows = with_column_rules(numbers.mapInArrow(parse, columns), parser.contract)
        return rows.mapInArrow(write, CHUNK)


def numbered(spark: SparkSession, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces, each with the number of records before it in its split."""
    following = {piece.splits[0] for piece in pieces if piece.first is None}
    counted = [piece for piece in pieces if piece.splits[0] in following]
    if not counted:
        return [*pieces]

    def count(batches: Batches) -> Batches:
        for n in _numbers(batches):
            yield pa.record_batch({"id": [n], "lines": [counted[n].count()]})

    job = _over(spark, len(counted)).mapInArrow(count, "id long, lines long")
    lines = dict(zip(*job.toArrow().to_pydict().values(), strict=True))
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


def written_chunks(parsed: Iterable[pa.Table], writer: ChunkWriter) -> Batches:
    """Write parsed lines; each chunk as one text, or why a piece cannot be read."""
    try:
        for rows in parsed:
            yield _line(writer.written(rows))
    except SplitsUnreadable as error:
        yield _line(Chunk(unreadable=error.splits))


def _line(chunk: Chunk) -> pa.RecordBatch:
    return pa.record_batch({"chunk": [msgspec.json.encode(chunk).decode()]})


def _over(spark: SparkSession, tasks: int) -> DataFrame:
    return spark.range(0, tasks, 1, max(tasks, 1))


def _numbers(batches: Batches) -> Iterator[int]:
    for batch in batches:
        yield from batch["id"].to_pylist()
