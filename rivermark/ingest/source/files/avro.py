"""Avro files, decoded by fastavro: each record keeps its types, and has a payload."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from typing import IO, Any, Final

import fastavro
import pyarrow as pa
from fastavro._read_py import reader as careful_reader

from rivermark.ingest.source.avro_values import is_endless, mark
from rivermark.ingest.source.files.stored_file import open_stored
from rivermark.ingest.source.payload import TypedRecords
from rivermark.ingest.source.typed_rows import in_base64, record_columns
from rivermark.lake.filesystem import filesystem
from rivermark.lake.value_texts import decoded, odd_text
from rivermark.model.json_text import json_text

MARKER: Final = 16
"""Bytes behind each block."""
ROWS: Final = 4_096
MOST_BYTES: Final = 8 << 20
"""Records of a file that are held at once as Python has them, and about so much of their text."""


def avro_records(
    path: str, wanted: Collection[str] | None, span: tuple[int, int] | None = None
) -> Iterator[TypedRecords]:
    """The records of a file, in their order; batch after batch.

    With `span` those of the blocks between these two bytes, behind the file's header.
    """
    rows: list[dict[str, Any]] = []
    payloads: list[bytes] = []
    size = 0
    with _opened(path, span) as file:
        # A text that is no UTF-8 has half characters, which cost its row and not its file.
        records: Any = fastavro.reader(file, handle_unicode_errors="surrogateescape")
        if is_endless(records.writer_schema):
            file.seek(0)
            records = careful_reader(file, handle_unicode_errors="surrogateescape")
        mark(records.writer_schema)
        for record in records:
            # The probe lets in only files whose items are records.
            rows.append(_with_texts(record, wanted))
            payloads.append(json_text(rows[-1]))
            size += len(payloads[-1])
            if len(payloads) == ROWS or size > MOST_BYTES:
                yield TypedRecords(pa.array(payloads, pa.string()), record_columns(rows, wanted))
                rows, payloads, size = [], [], 0
    if payloads:
        yield TypedRecords(pa.array(payloads, pa.string()), record_columns(rows, wanted))


def avro_spans(path: str, most: float) -> Iterator[tuple[tuple[int, int], int, float]]:
    """Blocks that follow each other, up to this share of the file's bytes, or one of them.

    Each from one byte up to another, with the number of records before it, and its share. Blocks
    say how long they are, so that only their beginnings are read.
    """
    files, inside = filesystem(path)
    with open_stored(files, inside) as file:
        fastavro.block_reader(file)
        start = place = file.tell()
        end = file.seek(0, io.SEEK_END)
        first = records = 0
        while place < end:
            file.seek(place)
            count, size = _number(file), _number(file)
            behind = file.tell() + size + MARKER
            if count < 0 or size < 0 or behind > end:
                raise ValueError(f"no block begins at byte {place}")
            if place > start and (behind - start) / end > most:
                yield (start, place), first, (place - start) / end
                start, first, records = place, first + records, 0
            place, records = behind, records + count
        yield (start, place), first, (place - start) / end


def _number(file: IO[bytes]) -> int:
    """A number of a block's beginning: seven bits a byte, its sign in the lowest one."""
    value = shift = 0
    while True:
        byte = file.read(1)[0]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1)


def _opened(path: str, span: tuple[int, int] | None) -> IO[bytes]:
    files, inside = filesystem(path)
    file = open_stored(files, inside)
    if span is None:
        return file
    with file:
        fastavro.block_reader(file)
        header = file.tell()
        file.seek(0)
        head = file.read(header)
        file.seek(span[0])
        return io.BytesIO(head + file.read(span[1] - span[0]))


def _with_texts(record: dict[str, Any], wanted: Collection[str] | None) -> dict[str, Any]:
    """The record with its bytes as texts, as those of a Parquet row are."""
    for name, value in record.items():
        if isinstance(value, bytes):
            matters = wanted is None or name.lower() in wanted
            record[name] = decoded(value, odd_text if matters else in_base64)
    return record
