"""Jobs over pieces of splits: each task reads its own, where they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from rivermark.ingest.lines import LINES, KnownSplits, read_numbered
from rivermark.model.source import Piece


def lines_on_executors(
    spark: SparkSession, pieces: Sequence[Piece], known: KnownSplits
) -> DataFrame:
    """The lines of pieces, a task each."""
    pieces = numbered(spark, pieces)

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for n in batch["id"].to_pylist():
                for records in read_numbered([pieces[n]], lambda piece: piece.read()):
                    yield from known.lines(records).combine_chunks().to_batches()

    schema = from_arrow_schema(LINES)
    return spark.range(0, len(pieces), 1, max(len(pieces), 1)).mapInArrow(read, schema)


def numbered(spark: SparkSession, pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces, each with the number of records before it in its split."""
    following = {piece.splits[0] for piece in pieces if piece.first is None}
    counted = [piece for piece in pieces if piece.splits[0] in following]

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            lines = [counted[n].count() for n in batch["id"].to_pylist()]
            yield pa.record_batch({"id": batch["id"], "lines": pa.array(lines, pa.int64())})

    if not counted:
        return [*pieces]
    job = spark.range(0, len(counted), 1, len(counted)).mapInArrow(count, "id long, lines long")
    lines = dict(zip(*job.toArrow().to_pydict().values(), strict=True))
    behind: dict[str, int] = {}
    first: dict[int, int] = {}
    for n, piece in enumerate(counted):
        first[id(piece)] = behind.get(piece.splits[0], 0)
        behind[piece.splits[0]] = first[id(piece)] + lines[n]
    return [replace(p, first=first[id(p)]) if id(p) in first else p for p in pieces]
