"""Avro files, decoded by fastavro: each record becomes a JSON payload."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, cast

import fastavro
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rivermark.ingest.source.files.stored_file import open_stored
from rivermark.ingest.source.json_text import decoded
from rivermark.ingest.source.payload import RECORDS, arrow_records, json_payload
from rivermark.lake.filesystem import filesystem

ROWS: Final = 4_096
MOST_CHARACTERS: Final = 8 << 20
"""Records of a file that are held at once as Python has them, and about so much of their text."""


def avro_payloads(path: str, wanted: Collection[str] | None) -> Iterator[pa.StringArray]:
    """The records of a file as JSON objects, in their order; batch after batch."""
    files, inside = filesystem(path)
    payloads: list[str] = []
    size = 0
    with open_stored(files, inside) as file:
        for record in fastavro.reader(file):
            # The probe lets in only files whose items are records.
            payloads.append(json_payload(_with_texts(cast(dict[str, Any], record), wanted)))
            size += len(payloads[-1])
            if len(payloads) == ROWS or size > MOST_CHARACTERS:
                yield pa.array(payloads, pa.string())
                payloads, size = [], 0
    if payloads:
        yield pa.array(payloads, pa.string())


def _with_texts(record: dict[str, Any], wanted: Collection[str] | None) -> dict[str, Any]:
    """The record with its bytes as texts, as those of a Parquet row are."""
    return {
        name: decoded(value, wanted is None or name.lower() in wanted)
        if isinstance(value, bytes)
        else value
        for name, value in record.items()
    }


def read_avro(
    spark: SparkSession, paths: Mapping[str, str], wanted: Collection[str] | None
) -> DataFrame:
    """The records of files, by URI, as the columns that `read_files` documents; one task a file."""
    rows = [(number, uri, path) for number, (uri, path) in enumerate(paths.items())]
    files = spark.createDataFrame(rows, "_part int, _split string, path string")

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for file in batch.to_pylist():
                yield from _records(file["_part"], file["_split"], file["path"], wanted)

    return files.repartition(len(rows), "_part").mapInArrow(read, RECORDS)


def _records(
    part: int, uri: str, path: str, wanted: Collection[str] | None
) -> Iterator[pa.RecordBatch]:
    place = 0
    for payloads in avro_payloads(path, wanted):
        yield arrow_records(uri, payloads, part, place)
        place += len(payloads)
