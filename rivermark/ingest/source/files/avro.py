"""Avro files, decoded by fastavro: each record becomes a JSON payload."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Final

import fastavro
import pyarrow as pa
from fastavro._read_py import reader as careful_reader

from rivermark.ingest.source.avro_values import is_endless, mark
from rivermark.ingest.source.files.stored_file import open_stored
from rivermark.ingest.source.json_words import decoded
from rivermark.ingest.source.payload import json_payload
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
        # A text that is no UTF-8 has half characters, which cost its row and not its file.
        records: Any = fastavro.reader(file, handle_unicode_errors="surrogateescape")
        if is_endless(records.writer_schema):
            file.seek(0)
            records = careful_reader(file, handle_unicode_errors="surrogateescape")
        mark(records.writer_schema)
        for record in records:
            # The probe lets in only files whose items are records.
            payloads.append(json_payload(_with_texts(record, wanted)))
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
