"""A check of a landed file before it is read: whether it is whole, its format and columns."""

from __future__ import annotations

import csv
import gzip
import io
import json
import struct
import zlib
from dataclasses import dataclass
from typing import Final, Literal

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from rivermark.ingest.source.files.options import FileFormat, FileOptions

Status = Literal["ready", "rejected", "waiting"]

ENDINGS: Final[dict[str, FileFormat]] = {
    ".parquet": "parquet",
    ".avro": "avro",
    ".csv": "csv",
    ".txt": "csv",
    ".log": "text",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
HEAD_BYTES: Final = 1 << 20
"""How much of a text file is searched for its first line; a longer line is not a header."""


@dataclass(frozen=True)
class FileProbe:
    """The result of probing a file.

    `columns` is the file's own list of column names, `head` its header line where it has one.
    `doubtful` marks a fault that goes away while the file is being written (no end, no footer).
    `settling` marks a file that becomes ready by waiting.
    """

    status: Status
    format: FileFormat | None = None
    reason: str | None = None
    columns: tuple[str, ...] | None = None
    head: str | None = None
    doubtful: bool = False
    settling: bool = False


def format_of(name: str, options: FileOptions) -> FileFormat | None:
    """The declared format, or the one of the file's ending; None for an unknown ending."""
    if options.format is not None:
        return options.format
    plain = name.lower().removesuffix(".gz")
    return next((kind for end, kind in ENDINGS.items() if plain.endswith(end)), None)


def probe_file(files: fs.FileSystem, path: str, size: int, options: FileOptions) -> FileProbe:
    """Whether a file is ready, rejected with a reason, or not readable yet."""
    kind = format_of(path.rsplit("/", 1)[-1], options)
    if kind is None:
        return FileProbe("rejected", reason="file_unknown_format")
    if size == 0:
        return FileProbe("rejected", kind, "file_empty", doubtful=True)
    try:
        if kind == "parquet":
            return probe_parquet(files, path)
        if kind == "avro":
            return probe_avro(files, path)
        return probe_text(files, path, size, kind, options)
    except (PermissionError, FileNotFoundError, IsADirectoryError) as error:
        return FileProbe("waiting", kind, f"cannot be read yet: {type(error).__name__}")
    except OSError as error:
        return FileProbe("waiting", kind, f"cannot be read yet: {error}")


def probe_parquet(files: fs.FileSystem, path: str) -> FileProbe:
    """Read a Parquet footer; a file without one is cut or still being written."""
    try:
        with files.open_input_file(path) as file:
            schema = pq.read_schema(file)
    except pa.ArrowInvalid as error:
        reason = f"file_corrupt: {str(error).splitlines()[0]}"
        return FileProbe("rejected", "parquet", reason, doubtful=True)
    return FileProbe("ready", "parquet", columns=tuple(schema.names))


def probe_avro(files: fs.FileSystem, path: str) -> FileProbe:
    """Read an Avro header, and the length and end of each block; records are not decoded."""
    try:
        with files.open_input_file(path) as file:
            blocks = fastavro.block_reader(file)
            for _ in blocks:
                pass
            schema = blocks.writer_schema
    # A cut file raises whatever its decoder meets first.
    except (ValueError, EOFError, IndexError, KeyError, struct.error) as error:
        reason = f"file_corrupt: {type(error).__name__}: {error}"
        return FileProbe("rejected", "avro", reason, doubtful=True)
    if not isinstance(schema, dict) or schema.get("type") != "record":
        return FileProbe("rejected", "avro", "file_corrupt: its items are no records")
    return FileProbe("ready", "avro", columns=tuple(f["name"] for f in schema["fields"]))


def probe_text(
    files: fs.FileSystem, path: str, size: int, kind: FileFormat, options: FileOptions
) -> FileProbe:
    """Read a text file's first line and its last byte; a gzipped one is unpacked to its end."""
    if path.lower().endswith(".gz"):
        try:
            with files.open_input_stream(path, compression=None) as packed:
                start, last = unpack(packed)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            return FileProbe("rejected", kind, f"file_corrupt: {error}", doubtful=True)
    else:
        with files.open_input_file(path) as file:
            start = file.read(HEAD_BYTES)
            file.seek(size - 1)
            last = file.read(1)
    unfinished = last not in (b"\n", b"\r", b"")
    if kind == "text":
        return FileProbe("ready", kind, doubtful=unfinished)
    line = first_line(start, options.encoding)
    if kind == "csv":
        if options.columns:
            return FileProbe("ready", kind, None, options.columns, None, unfinished)
        names = next(csv.reader(io.StringIO(line), delimiter=options.delimiter), [])
        return FileProbe("ready", kind, None, tuple(n.strip() for n in names), line, unfinished)
    return FileProbe("ready", kind, None, keys_of(line), None, unfinished)


def unpack(packed: pa.NativeFile) -> tuple[bytes, bytes]:
    """First bytes and last byte of a gzip stream, having proved that it is whole."""
    start, last = b"", b""
    with gzip.GzipFile(fileobj=packed) as plain:
        while chunk := plain.read(HEAD_BYTES):
            start = start or chunk
            last = chunk[-1:]
    return start, last


def first_line(start: bytes, encoding: str) -> str:
    """The first line that holds anything, without a byte order mark or a carriage return."""
    text = start.decode(encoding, errors="replace").removeprefix("\ufeff")
    return next((line for line in text.splitlines() if line.strip()), "")


def keys_of(line: str) -> tuple[str, ...] | None:
    """The keys of a JSON object, or None where the line is not one."""
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return tuple(value) if isinstance(value, dict) else None
