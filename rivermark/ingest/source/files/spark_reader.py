"""Landed files as raw rows on Spark: a line, or a Parquet row as JSON, each with its place."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.ingest.source.files.avro import read_avro
from rivermark.ingest.source.files.options import FileOptions
from rivermark.ingest.source.payload import TO_JSON, spark_records
from rivermark.ingest.spark_internals import hadoop_uri
from rivermark.lake.filesystem import filesystem
from rivermark.model.source import PlannedSplit


def read_files(
    spark: SparkSession, files: Sequence[PlannedSplit], options: FileOptions
) -> DataFrame:
    """Rows of the files: `_split` (its URI), `payload`, `_mid` and `_part`, empty lines included.

    `_mid` rises along a file within `_part`; together they give line numbers once each part's
    smallest one is known. Reading is lazy: a file that turns out to be
    damaged raises when rows are fetched.
    """
    frames = []
    text = [f for f in files if f.format not in ("parquet", "avro")]
    if text:
        lines = read_lines(spark, text, options.encoding)
        frames.append(
            spark_records(lines, F.col("_metadata.file_path"), F.make_valid_utf8("value"))
        )
    for group in by_schema([f for f in files if f.format == "parquet"]):
        frame = spark.read.parquet(*[escape(f.path) for f in group])
        frames.append(spark_records(frame, F.col("_metadata.file_path"), as_json(frame, group[0])))
    avro = [f for f in files if f.format == "avro"]
    if avro:
        frames.append(read_avro(spark, {hadoop_uri(spark, f.path): f.path for f in avro}))
    if not frames:
        return spark.createDataFrame([], "_split string, payload string, _mid long, _part int")
    return reduce(DataFrame.unionByName, frames)


def read_lines(spark: SparkSession, files: Sequence[PlannedSplit], encoding: str) -> DataFrame:
    """The lines of text files in a column `value`, whatever their line ends.

    Spark's text source knows UTF-8 only and keeps other bytes as they are, which no Arrow reader
    takes: they become replacement characters, and such rows are quarantined. Other encodings go
    through the CSV source with quoting and splitting switched off.
    """
    paths = [escape(f.path) for f in files]
    if encoding.upper().replace("-", "") == "UTF8":
        return spark.read.text(paths)
    reader = spark.read.options(
        sep="\u0001",
        quote="",
        escape="",
        encoding=encoding,
        maxCharsPerColumn=-1,
        nullValue="\u0001",
    )
    return reader.schema("value string").csv(paths)


def as_json(frame: DataFrame, file: PlannedSplit) -> Column:
    """A Parquet row as one JSON object; nanosecond times, which Spark reads as longs, as times."""
    nanos = {f.name for f in arrow_schema(file.path) if str(f.type).startswith("timestamp[ns")}
    columns = [
        F.timestamp_micros((F.col(f"`{c}`") / 1000).cast("long")).cast("timestamp_ntz").alias(c)
        if c in nanos
        else F.col(f"`{c}`")
        for c in frame.columns
    ]
    return F.to_json(F.struct(*columns), TO_JSON)


def by_schema(files: Sequence[PlannedSplit]) -> list[list[PlannedSplit]]:
    """Parquet files of one physical schema together: Spark would read others by the first one's."""
    groups: dict[str, list[PlannedSplit]] = {}
    for file in files:
        schema = arrow_schema(file.path).remove_metadata()
        groups.setdefault(str(schema), []).append(file)
    return list(groups.values())


def arrow_schema(path: str) -> pa.Schema:
    """A Parquet file's own schema, from its footer."""
    files, inside = filesystem(path)
    with files.open_input_file(inside) as file:
        return pq.read_schema(file)


def escape(path: str) -> str:
    """A path in which no character is taken for a pattern."""
    return "".join(f"\\{c}" if c in "[]{}*?\\" else c for c in path)
