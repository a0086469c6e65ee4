"""Landed files as raw rows on Spark: a line, or a record as JSON, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.ingest.source.files.avro import avro_payloads
from rivermark.ingest.source.files.driver_reader import packed_payloads, reader_of
from rivermark.ingest.source.files.options import FileOptions, is_utf8
from rivermark.ingest.source.files.parquet import TASKS_A_CORE, read_parquet
from rivermark.ingest.source.payload import RECORDS, arrow_records, spark_records
from rivermark.ingest.spark_internals import hadoop_uri
from rivermark.model.source import PlannedSplit


def read_files(
    spark: SparkSession,
    files: Sequence[PlannedSplit],
    options: FileOptions,
    wanted: Collection[str] | None = None,
) -> DataFrame:
    """Rows of the files: `_split` (its URI), `payload`, `_mid` and `_part`, empty lines included.

    `_mid` rises along a file within `_part`; together they give line numbers once each part's
    smallest one is known. `wanted` are the columns that the contract knows, in lower case. Reading
    is lazy: a file that turns out to be damaged raises when rows are fetched.
    """
    frames = []
    if lines := [f for f in files if reader_of(f) == "lines"]:
        frames.append(read_lines(spark, lines, options.encoding))
    parquet, avro, packed = (
        [(hadoop_uri(spark, f.path), f.path) for f in files if reader_of(f) == kind]
        for kind in ("parquet", "avro", "packed")
    )
    if parquet:
        frames.append(read_parquet(spark, parquet, wanted))
    if avro:
        frames.append(read_whole(spark, avro, partial(avro_payloads, wanted=wanted)))
    if packed:
        lines_of = partial(packed_payloads, encoding=options.encoding)
        frames.append(read_whole(spark, packed, lines_of))
    if not frames:
        return spark.createDataFrame([], RECORDS)
    return reduce(DataFrame.unionByName, frames)


def read_lines(spark: SparkSession, files: Sequence[PlannedSplit], encoding: str) -> DataFrame:
    """The lines of text files, whatever their line ends.

    Spark's text source cuts lines and keeps their bytes. What they do not spell in the encoding
    becomes replacement characters, and such rows are quarantined.
    """
    lines = spark.read.text([escape(f.path) for f in files])
    split = F.col("_metadata.file_path")
    if is_utf8(encoding):
        return spark_records(lines, split, F.make_valid_utf8("value"))

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            texts = [line.decode(encoding, "replace") for line in batch["payload"].to_pylist()]
            place = batch.schema.get_field_index("payload")
            yield batch.set_column(place, "payload", pa.array(texts, pa.string()))

    records = spark_records(lines, split, F.col("value").cast("binary"))
    return records.mapInArrow(decode, RECORDS)


def read_whole(
    spark: SparkSession,
    paths: Sequence[tuple[str, str]],
    payloads_of: Callable[[str], Iterator[pa.StringArray]],
) -> DataFrame:
    """The records of files (URI, path) that are read from their beginning on; none is split."""
    rows = [(number, uri, path) for number, (uri, path) in enumerate(paths)]
    files = spark.createDataFrame(rows, "_part int, _split string, path string")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch.to_pylist():
                place = 0
                for payloads in payloads_of(file["path"]):
                    yield arrow_records(file["_split"], payloads, file["_part"], place)
                    place += len(payloads)

    tasks = min(len(rows), TASKS_A_CORE * spark.sparkContext.defaultParallelism)
    return files.repartition(tasks, "_part").mapInArrow(read, RECORDS)


def escape(path: str) -> str:
    """A path in which no character is taken for a pattern."""
    return "".join(f"\\{c}" if c in "[]{}*?\\" else c for c in path)
