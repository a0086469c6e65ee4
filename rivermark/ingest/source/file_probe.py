"""A look at a landed file before it is read: is it whole, what is in it, what are its columns."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from dataclasses import dataclass
from typing import Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from rivermark.model.file_source import FileFormat, FileSource

Verdict = Literal["ready", "rejected", "waiting"]

ENDINGS: Final[dict[str, FileFormat]] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".txt": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
HEAD_BYTES: Final = 1 << 20
"""How much of a text file is looked at for its first line; a longer line is not a header."""


@dataclass(frozen=True)
class Screening:
    """What the look at a file gave.

    `columns` is the file's own list of column names, `head` its header line where it has one.
    `doubtful` marks a fault that a writer at work may still mend (no end, no footer).
    """

    verdict: Verdict
    format: FileFormat | None = None
    reason: str | None = None
    columns: tuple[str, ...] | None = None
    head: str | None = None
    doubtful: bool = False


def format_of(name: str, source: FileSource) -> FileFormat | None:
    """The declared format, or the one that the file's ending tells; None for an unknown ending."""
    if source.format is not None:
        return source.format
    plain = name.lower().removesuffix(".gz")
    return next((kind for end, kind in ENDINGS.items() if plain.endswith(end)), None)


def screen(files: fs.FileSystem, path: str, size: int, source: FileSource) -> Screening:
    """Look at a file: ready, rejected with a reason, or not readable yet."""
    kind = format_of(path.rsplit("/", 1)[-1], source)
    if kind is None:
        return Screening("rejected", reason="file_unknown_format")
    if size == 0:
        return Screening("rejected", kind, "file_empty", doubtful=True)
    try:
        if kind == "parquet":
            return screen_parquet(files, path)
        return screen_text(files, path, size, kind, source)
    except (PermissionError, FileNotFoundError, IsADirectoryError) as error:
        return Screening("waiting", kind, f"cannot be read yet: {type(error).__name__}")
    except OSError as error:
        return Screening("waiting", kind, f"cannot be read yet: {error}")


def screen_parquet(files: fs.FileSystem, path: str) -> Screening:
    """Read a Parquet footer; a file without one is cut or still being written."""
    try:
        with files.open_input_file(path) as file:
            schema = pq.read_schema(file)
    except pa.ArrowInvalid as error:
        reason = f"file_corrupt: {str(error).splitlines()[0]}"
        return Screening("rejected", "parquet", reason, doubtful=True)
    return Screening("ready", "parquet", columns=tuple(schema.names))


def screen_text(
    files: fs.FileSystem, path: str, size: int, kind: FileFormat, source: FileSource
) -> Screening:
    """Read a text file's first line and its last byte; a gzipped one is unpacked to its end."""
    if path.lower().endswith(".gz"):
        try:
            with files.open_input_stream(path, compression=None) as packed:
                start, last = unpack(packed)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            return Screening("rejected", kind, f"file_corrupt: {error}", doubtful=True)
    else:
        with files.open_input_file(path) as file:
            start = file.read(HEAD_BYTES)
            file.seek(size - 1)
            last = file.read(1)
    unfinished = last not in (b"\n", b"\r", b"")
    line = first_line(start, source.encoding)
    if kind == "csv":
        if source.columns:
            return Screening("ready", kind, None, source.columns, None, unfinished)
        names = next(csv.reader(io.StringIO(line), delimiter=source.delimiter), [])
        return Screening("ready", kind, None, tuple(n.strip() for n in names), line, unfinished)
    return Screening("ready", kind, None, keys_of(line), None, unfinished)


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
        found = json.loads(line)
    except ValueError:
        return None
    return tuple(found) if isinstance(found, dict) else None
