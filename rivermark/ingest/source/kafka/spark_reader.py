"""Ranges of offsets read by Spark's workers: for batches too large for the driver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rivermark.ingest.source.kafka.messages import Reading
from rivermark.ingest.source.kafka.position import Range

PIECE: Final = 10_000
"""Offsets that a task reads."""
RECORDS: Final = "_split string, _row long, payload string, _part int, _mid long"


def read_on_spark(spark: SparkSession, reading: Reading, ranges: Mapping[str, Range]) -> DataFrame:
    """The records of named ranges, read in pieces by Spark's workers."""
    pieces = [
        (name, replace(each, start=start, end=min(start + PIECE, each.end)))
        for name, each in ranges.items()
        for start in range(each.start, each.end, PIECE)
    ]

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        consumer = reading.consumer()
        try:
            for batch in batches:
                for n in batch["id"].to_pylist():
                    name, piece = pieces[n]
                    [rows] = reading.rows(consumer, [piece])
                    offsets = [offset for offset, _ in rows]
                    yield pa.record_batch(
                        [
                            pa.array([name] * len(rows), pa.string()),
                            pa.array(offsets, pa.int64()),
                            pa.array([text for _, text in rows], pa.string()),
                            pa.array([0] * len(rows), pa.int32()),
                            pa.array(offsets, pa.int64()),
                        ],
                        names=["_split", "_row", "payload", "_part", "_mid"],
                    )
        finally:
            consumer.close()

    numbers = spark.range(0, len(pieces), 1, max(len(pieces), 1))
    return numbers.mapInArrow(read, RECORDS)
