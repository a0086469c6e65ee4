"""The records of small files, read in the driver instead of by a Spark job. The same, to the byte.

Listing, planning and running a job to read a few hundred kilobytes costs more than parsing them.
What Spark's text source would change or refuse is not read here: `records_of` returns None, and the
files are read by Spark (rivermark.ingest.source.files.spark_reader), which stays the reference.
"""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from rivermark.ingest.source.files.avro import avro_payloads
from rivermark.ingest.source.files.file_probe import is_packed
from rivermark.ingest.source.files.options import FileOptions, is_utf8
from rivermark.ingest.source.files.parquet import parquet_records
from rivermark.ingest.source.files.stored_file import open_stored
from rivermark.ingest.source.payload import JsonRecords, Payloads, joined
from rivermark.lake.filesystem import filesystem
from rivermark.model.source import PlannedSplit

MOST_BYTES: Final = 48 << 20
"""Beyond so many bytes of text (gzip unpacked) the executors read."""
MOST_JSON_BYTES: Final = 256 << 20
"""The same for binary files as JSON: of those a few bytes may be millions of equal rows."""
PIECE_BYTES: Final = 8 << 20
"""Bytes of a packed text that executors hold at once, and what belongs to its last line."""
BINARY: Final = ("parquet", "avro")
"""Formats whose records become JSON."""
TEXT: Final = (".json", ".jsonl", ".ndjson", ".csv", ".txt", ".log")


def records_of(
    files: Sequence[PlannedSplit], options: FileOptions, wanted: Collection[str] | None = None
) -> list[Payloads] | None:
    """The payloads of each file, empty lines included; None where Spark has to read them.

    That is: bytes that are not UTF-8 where they should be (Spark replaces them), more than
    MOST_BYTES, other endings, text files that cannot be read or opened (Spark says why), and binary
    files of more than MOST_JSON_BYTES as JSON. `wanted` are the columns that the contract knows, in
    lower case.
    """
    if any(not (f.format in BINARY or plain(f)) for f in files):
        return None
    records: list[Payloads] = []
    left, left_json = MOST_BYTES, MOST_JSON_BYTES
    for file in files:
        if file.format in BINARY:
            parts = []
            for part in binary_records(file, wanted):
                left_json -= part.nbytes
                if left_json < 0:
                    return None
                parts.append(part)
            records.append(joined(parts))
            continue
        text = text_of(file.path, left, strict=is_utf8(options.encoding))
        if text is None:
            return None
        left -= len(text)
        records.append(lines_of(text, options.encoding))
    return records


def reader_of(file: PlannedSplit) -> str:
    """What reads a file: its binary format, else `packed` or `lines`, which Spark reads alone."""
    if file.format in BINARY:
        return file.format
    return "packed" if is_packed(file.path) else "lines"


def payloads_of(
    file: PlannedSplit, options: FileOptions, wanted: Collection[str] | None
) -> Iterator[pa.StringArray]:
    """The records of a binary file or a packed text, in their order; batch after batch."""
    if reader_of(file) == "packed":
        return packed_payloads(file.path, options.encoding)
    return binary_payloads(file, wanted)


def binary_payloads(file: PlannedSplit, wanted: Collection[str] | None) -> Iterator[pa.StringArray]:
    """The records of a Parquet or Avro file as JSON objects, in their order; batch after batch."""
    return (records.payloads for records in binary_records(file, wanted))


def binary_records(file: PlannedSplit, wanted: Collection[str] | None) -> Iterator[JsonRecords]:
    """The same, with the texts of a Parquet file's columns."""
    if file.format == "avro":
        return map(JsonRecords, avro_payloads(file.path, wanted))
    return parquet_records(file.path, wanted)


def lines_of(text: bytes, encoding: str) -> Payloads:
    """The lines of a text, by the three line ends of Hadoop's line reader and no others."""
    if b"\r" in text or not is_utf8(encoding):
        return [line.decode(encoding, "replace") for line in text.splitlines()]
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    if text and not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    # Lines and line ends in turn, as texts over the same bytes.
    bounds = np.zeros(2 * len(ends) + 1, np.int32)
    bounds[1::2] = ends
    bounds[2::2] = np.minimum(ends + 1, len(text))
    both = pa.StringArray.from_buffers(2 * len(ends), pa.py_buffer(bounds), pa.py_buffer(text))
    return both.take(pa.array(np.arange(0, 2 * len(ends), 2)))


def plain(file: PlannedSplit) -> bool:
    """Whether the file is text by its name, packed or not, and Hadoop can open it."""
    ending = file.name.lower().removesuffix(".gz").endswith(TEXT)
    return ending and ":" not in file.name


def packed_payloads(path: str, encoding: str) -> Iterator[pa.StringArray]:
    """The lines of a gzipped text, in their order; batch after batch.

    What is no text of the encoding becomes replacement characters. Zeros behind the last member
    are padding.
    """
    store, inside = filesystem(path)
    mark, rest = codecs.BOM_UTF8, b""
    with open_stored(store, inside) as file, gzip.GzipFile(fileobj=file) as text:
        while piece := text.read(PIECE_BYTES):
            while piece.endswith(b"\r") and (more := text.read(1)):
                # It may be half of a line's end.
                piece += more
            rest += piece.removeprefix(mark)
            mark = b""
            end = max(rest.rfind(b"\n"), rest.rfind(b"\r")) + 1
            yield _decoded_lines(rest[:end], encoding)
            rest = rest[end:]
    yield _decoded_lines(rest, encoding)


def _decoded_lines(text: bytes, encoding: str) -> pa.StringArray:
    if is_utf8(encoding):
        text = text.decode(errors="replace").encode()
    lines = lines_of(text, encoding)
    return lines if isinstance(lines, pa.Array) else pa.array(lines, pa.string())


def text_of(path: str, most: int, *, strict: bool) -> bytes | None:
    """A file's bytes without its byte order mark, if they are not more than `most`.

    With `strict` only where they are UTF-8.
    """
    store, inside = filesystem(path)
    try:
        with store.open_input_stream(inside, compression=None) as file:
            if is_packed(path):
                with gzip.GzipFile(fileobj=file) as packed:
                    text = packed.read(most + 1)
            else:
                text = file.read(most + 1)
        if len(text) > most:
            return None
        text = bytes(text).removeprefix(codecs.BOM_UTF8)
        if strict:
            text.decode()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError):
        return None
    return text
