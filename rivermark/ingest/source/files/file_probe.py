"""A check of a landed file before it is read: whether it is whole, its format and columns."""

from __future__ import annotations

import codecs
import gzip
import io
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from rivermark.ingest.source.files.header import UnusableHeader, csv_columns, first_line, keys_of
from rivermark.ingest.source.files.longest_line import LongestLine
from rivermark.ingest.source.files.options import FileFormat, FileOptions, is_utf8
from rivermark.ingest.source.files.stored_file import StoreFault, open_stored

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
"""How much of a text file is searched for its first line."""
PARQUET_MAGIC: Final = b"PAR1"
WIDE_MARKS: Final = (
    (codecs.BOM_UTF32_LE, b"\n\0\0\0", "UTF-32"),
    (codecs.BOM_UTF32_BE, b"\0\0\0\n", "UTF-32"),
    (codecs.BOM_UTF16_LE, b"\n\0", "UTF-16"),
    (codecs.BOM_UTF16_BE, b"\0\n", "UTF-16"),
)
"""How a text of another encoding begins, and a line's end in it, so that it is no chance."""
WIDE: Final = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
SAMPLE: Final = 4_096
"""Bytes of a text that are looked at for an encoding without a mark; a multiple of four."""
PACKED_MARKS: Final = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"\xfd7zXZ\0", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstandard"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"PK\x03\x04", "zip"),
    *((b"BZh%d1AY&SY" % level, "bzip2") for level in range(1, 10)),
)
"""How packed bytes begin, and no text does."""


@dataclass(frozen=True)
class FileProbe:
    """The result of probing a file.

    `columns` is the file's own list of column names, `head` its header line where it has one.
    `doubtful` marks a fault that goes away while the file is being written (no end, no footer).
    `settling` marks a file that becomes ready by waiting. `digest` is one of the file's bytes,
    where it was read to its end; `longest_line` the bytes of a packed text's, once unpacked.
    """

    status: Status
    format: FileFormat | None = None
    reason: str | None = None
    columns: tuple[str, ...] | None = None
    head: str | None = None
    doubtful: bool = False
    settling: bool = False
    digest: str | None = None
    longest_line: int = 0


def format_of(name: str, options: FileOptions) -> FileFormat | None:
    """The declared format, or the one of the file's ending; None for an unknown ending."""
    if options.format is not None:
        return options.format
    plain = name.lower().removesuffix(".gz")
    return next((kind for end, kind in ENDINGS.items() if plain.endswith(end)), None)


def probe_file(
    files: fs.FileSystem,
    path: str,
    size: int,
    options: FileOptions,
    wanted: Collection[str] | None = None,
) -> FileProbe:
    """Returns True if a file is ready, rejected with a reason, or not readable yet; raises nothing.

    `wanted` are the column names that the contract knows, in lower case; None where any may be.
    """
    kind = format_of(path.rsplit("/", 1)[-1], options)
    if kind is None:
        return FileProbe("rejected", reason="file_unknown_format")
    if kind not in ("parquet", "avro") and ":" in path.rsplit("/", 1)[-1]:
        # Hadoop takes what stands before it for a scheme. Parquet and Avro are read without it.
        return FileProbe("rejected", kind, "file_name_with_colon")
    if size == 0:
        return FileProbe("rejected", kind, "file_empty", doubtful=True)
    try:
        with open_stored(files, path) as file:
            match kind:
                case "parquet":
                    return probe_parquet(file, size)
                case "avro":
                    return probe_avro(file)
                case _:
                    return probe_text(file, is_packed(path), kind, options, wanted)
    except StoreFault as fault:
        return FileProbe("waiting", kind, f"cannot be read yet: {one_line(str(fault))}")
    except UnusableHeader as error:
        return FileProbe("rejected", kind, f"file_unusable_header: {error}", doubtful=True)
    except Exception as error:
        # A damaged file makes its decoder raise anything: KeyError, RecursionError, MemoryError.
        reason = f"file_corrupt: {one_line(f'{type(error).__name__}: {error}')}"
        return FileProbe("rejected", kind, reason, doubtful=True)


def probe_parquet(file: io.BufferedReader, size: int) -> FileProbe:
    """Read a Parquet footer; a file without one is cut or still being written."""
    file.seek(max(size - 8, 0))
    end = file.read()
    length = int.from_bytes(end[:4], "little")
    if end[4:] != PARQUET_MAGIC or length + 12 > size:
        return FileProbe("rejected", "parquet", "file_corrupt: no Parquet footer", doubtful=True)
    file.seek(size - 8 - length)
    # Decoded from memory: whatever is raised then is the footer's fault, not the store's.
    footer = pq.read_metadata(pa.BufferReader(PARQUET_MAGIC + file.read()))
    rows = sum(footer.row_group(n).num_rows for n in range(footer.num_row_groups))
    if rows != footer.num_rows:
        reason = f"file_corrupt: {rows} rows instead of {footer.num_rows}"
        return FileProbe("rejected", "parquet", reason, doubtful=True)
    return FileProbe("ready", "parquet", columns=tuple(footer.schema.to_arrow_schema().names))


def probe_avro(file: io.BufferedReader) -> FileProbe:
    """Read an Avro header, and the length and end of each block; records are not decoded."""
    blocks = fastavro.block_reader(file)
    for _ in blocks:
        pass
    schema: Any = blocks.writer_schema
    if not isinstance(schema, dict) or schema.get("type") != "record":
        return FileProbe("rejected", "avro", "file_corrupt: its items are no records")
    return FileProbe("ready", "avro", columns=tuple(f["name"] for f in schema["fields"]))


def probe_text(
    file: io.BufferedReader,
    packed: bool,
    kind: FileFormat,
    options: FileOptions,
    wanted: Collection[str] | None,
) -> FileProbe:
    """Read a text file's first line and its last byte; a gzipped one is unpacked to its end."""
    longest = 0
    if packed:
        start, last, longest = unpack(file)
    else:
        start = file.read(HEAD_BYTES)
        file.seek(-1, io.SEEK_END)
        last = file.read(1)
    packing = next((name for mark, name in PACKED_MARKS if start.startswith(mark)), None)
    if packing is not None:
        reason = f"file_packed: {'in gzip it is' if packed else 'it is'} {packing}, and no text"
        return FileProbe("rejected", kind, reason)
    other = other_encoding(start, options.encoding)
    if other is not None:
        reason = f"file_other_encoding: {other}, its source {options.encoding}"
        return FileProbe("rejected", kind, reason)
    unfinished = last not in (b"\n", b"\r", b"")
    columns, head = None, None
    if kind == "csv":
        columns, head = csv_columns(start, options, wanted)
    elif kind == "json":
        columns = keys_of(first_line(start, options.encoding))
    return FileProbe("ready", kind, None, columns, head, unfinished, longest_line=longest)


def other_encoding(start: bytes, encoding: str) -> str | None:
    """The sign of another encoding than the declared one; None where there is none.

    That is its byte order mark, or without one that it has the zero bytes of UTF-16 or UTF-32: read
    as anything else its lines begin and end within characters, and its texts are full of zeros.
    """
    if start.startswith(codecs.BOM_UTF8):
        return None if is_utf8(encoding) else "its mark says UTF-8"
    for mark, end, name in WIDE_MARKS:
        if start.startswith(mark) and end in start:
            return f"its mark says {name}"
    sample = start[: min(len(start), SAMPLE) // 4 * 4]
    if 0 in sample:
        for wide in WIDE:
            if _is_text(sample.decode(wide, errors="replace")):
                return f"it looks like {wide.upper()}"
    return None


def _is_text(text: str) -> bool:
    """Returns True if it is made of letters as most of Europe writes them, and no zeros."""
    plain = sum("\t" <= letter < "\u0250" for letter in text)
    return "\0" not in text and plain > 0.9 * len(text)


def is_packed(path: str) -> bool:
    """Returns True if a text file is gzipped, by its name."""
    return path.lower().endswith(".gz")


def unpack(packed: io.BufferedReader) -> tuple[bytes, bytes, int]:
    """A gzipped file's first bytes, its last one and its longest line; the rest is not held."""
    start, last, longest = b"", b"", LongestLine()
    with gzip.GzipFile(fileobj=packed) as plain:
        while chunk := plain.read(HEAD_BYTES):
            start = start or chunk
            last = chunk[-1:]
            longest.add(chunk)
    return start, last, longest.length


def one_line(message: str) -> str:
    """An error message as a reason: its first line, in 200 characters that are text."""
    first = next(iter(message.splitlines()), "")[:200]
    return first.encode(errors="backslashreplace").decode()
