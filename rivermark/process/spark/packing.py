"""Rows packed by bucket before the shuffle: Spark's operator then sees one row a bucket.

PySpark hands rows to a stateful operator one by one, cell by cell; packed they cross as the Arrow
buffers that they are (docs/decisions/0006-process-functions-on-spark.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BinaryType,
    IntegerType,
    LongType,
    ShortType,
    StructField,
    StructType,
)

from rivermark.process.spark.reading import BUCKET, InputReader
from rivermark.process.spark.stateful import TICK

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PACKED: Final = StructType(
    [
        StructField("bucket", IntegerType(), False),
        StructField("input", ShortType(), False),
        StructField("place", LongType(), False),
        StructField("payload", BinaryType(), False),
    ]
)
"""A bucket's label, the rank of the input, the order of the packets, and the rows in Arrow form."""

_SCHEMA: Final = pa.schema(
    [("bucket", pa.int32()), ("input", pa.int16()), ("place", pa.int64()), ("payload", pa.binary())]
)
_PLACES: Final = 1 << 32


@dataclass(frozen=True)
class Packer:
    """Turns batches of an input's rows into a packet a bucket; runs in the tasks that read."""

    reader: InputReader
    labels: tuple[int, ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack each batch."""
        task = TaskContext.get()
        place = (task.partitionId() if task else 0) * _PLACES
        for batch in batches:
            if batch.num_rows:
                yield self._packed(batch, place)
                place += 1

    def _packed(self, batch: pa.RecordBatch, place: int) -> pa.RecordBatch:
        width = len(self.reader.schema)
        rows = pa.RecordBatch.from_arrays(batch.columns[:width], schema=self.reader.schema)
        if self.reader.spec.broadcast:
            packets = [rows.serialize().to_pybytes()] * len(self.labels)
            return self._packets(list(self.labels), packets, place)
        if self.reader.bucketed:
            buckets = batch.column(BUCKET).to_numpy(zero_copy_only=False)
        else:
            by_python = self.reader.buckets_of(rows, len(self.labels))
            buckets = np.array(by_python, dtype=np.int16)
        order = np.argsort(buckets, kind="stable")
        rows, sorted_buckets = rows.take(pa.array(order)), buckets[order]
        starts = [0, *(np.flatnonzero(np.diff(sorted_buckets)) + 1).tolist()]
        ends = [*starts[1:], len(order)]
        packets = [
            rows.slice(start, end - start).serialize().to_pybytes()
            for start, end in zip(starts, ends, strict=True)
        ]
        return self._packets([self.labels[sorted_buckets[s]] for s in starts], packets, place)

    def _packets(self, labels: list[int], packets: list[bytes], place: int) -> pa.RecordBatch:
        columns = [
            pa.array(labels, pa.int32()),
            pa.array([self.reader.rank] * len(labels), pa.int16()),
            pa.array([place] * len(labels), pa.int64()),
            pa.array(packets, pa.binary()),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=_SCHEMA)


def ticks(session: SparkSession, labels: Sequence[int]) -> DataFrame:
    """A packet for each bucket in every batch, with nothing in it: Spark runs none without input.

    So each look at the input becomes a batch, and the host looks when a timer is due. Timers of
    Spark's own would do for one kind of time only, and a function may use both.
    """
    one = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    return one.select(
        F.explode(F.lit(list(labels))).alias("bucket"),
        F.lit(TICK).cast("smallint").alias("input"),
        F.lit(0).cast("bigint").alias("place"),
        F.lit(bytearray()).alias("payload"),
    )
