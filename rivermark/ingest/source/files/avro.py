"""Avro files, decoded by fastavro: each record becomes a JSON payload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import fastavro
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rivermark.ingest.source.files.stored_file import open_stored
from rivermark.ingest.source.payload import json_payload
from rivermark.lake.filesystem import filesystem

ROWS: int = 4_096
"""Records of a file that go to Spark at once."""


def avro_payloads(path: str) -> Iterator[str]:
    """The records of a file as JSON objects, in their order."""
    files, inside = filesystem(path)
    with open_stored(files, inside) as file:
        for record in fastavro.reader(file):
            # The probe lets in only files whose items are records.
            yield json_payload(cast(dict[str, Any], record))


def read_avro(spark: SparkSession, paths: Mapping[str, str]) -> DataFrame:
    """The records of files, by URI, as the columns that `read_files` documents; one task a file."""
    rows = [(number, uri, path) for number, (uri, path) in enumerate(paths.items())]
    files = spark.createDataFrame(rows, "_part int, _split string, path string")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch.to_pylist():
                yield from _records(file["_part"], file["_split"], file["path"])

    schema = "_split string, payload string, _mid long, _part int"
    return files.repartition(len(rows), "_part").mapInArrow(read, schema)


def _records(part: int, uri: str, path: str) -> Iterator[pa.RecordBatch]:
    payloads: list[str] = []
    first = 0
    for payload in avro_payloads(path):
        payloads.append(payload)
        if len(payloads) == ROWS:
            yield _batch(part, uri, first, payloads)
            first, payloads = first + len(payloads), []
    if payloads:
        yield _batch(part, uri, first, payloads)


def _batch(part: int, uri: str, first: int, payloads: list[str]) -> pa.RecordBatch:
    count = len(payloads)
    return pa.record_batch(
        {
            "_split": pa.array([uri] * count, pa.string()),
            "payload": pa.array(payloads, pa.string()),
            "_mid": pa.array(range(first, first + count), pa.int64()),
            "_part": pa.array([part] * count, pa.int32()),
        }
    )
