"""Landed files cut into pieces: bytes of a text, row groups of Parquet, blocks of Avro."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rivermark.ingest.source.files.avro import avro_records, avro_spans
from rivermark.ingest.source.files.file_probe import is_packed
from rivermark.ingest.source.files.options import FileOptions, is_utf8
from rivermark.ingest.source.files.stored_file import open_stored
from rivermark.ingest.source.payload import Payloads, TypedRecords, numbered
from rivermark.ingest.source.typed_rows import typed_records
from rivermark.lake.filesystem import filesystem
from rivermark.model.source import Piece, PlannedSplit, Records

CHUNK_BYTES: Final = 8 << 20
"""Bytes of a text that are held at once, and what belongs to its last line."""
SEARCHED: Final = 1 << 16
"""Bytes that are looked at together for a line's end."""


def lines_of(chunks: Iterable[bytes], encoding: str) -> Iterator[pa.StringArray]:
    """The lines in their order, some at a time, empty ones included.

    What is no text of the encoding becomes replacement characters. A byte order mark at the
    beginning belongs to no line.
    """
    mark, rest = codecs.BOM_UTF8, b""
    for chunk in chunks:
        rest += chunk.removeprefix(mark)
        mark = b""
        # A CR at the end may be half of a line's end.
        end = max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, -1)) + 1
        if end:
            yield _decoded(rest[:end], encoding)
            rest = rest[end:]
    if rest:
        yield _decoded(rest, encoding)


def count_lines(chunks: Iterable[bytes]) -> int:
    """Number of lines that `lines_of` finds."""
    ends, last = 0, b""
    for chunk in chunks:
        ends += chunk.count(b"\n")
        if b"\r" in chunk or last == b"\r":
            ends += chunk.count(b"\r") - (last + chunk).count(b"\r\n")
        last = chunk[-1:]
    return ends + (last not in (b"\n", b"\r", b""))


def line_starts(file: BufferedReader, most_bytes: int) -> list[int]:
    """The places at which a text is cut into pieces of about so many bytes, behind line feeds."""
    starts = [0]
    while (start := _behind_line_feed(file, starts[-1] + most_bytes - 1)) is not None:
        starts.append(start)
    return starts


def _behind_line_feed(file: BufferedReader, offset: int) -> int | None:
    """The first place after a line feed at or behind the offset; None at the end of the file."""
    file.seek(offset)
    while chunk := file.read(SEARCHED):
        place = chunk.find(b"\n")
        if place >= 0:
            after = offset + place + 1
            file.seek(after)
            return after if file.read(1) else None
        offset += len(chunk)
    return None


def _decoded(text: bytes, encoding: str) -> pa.StringArray:
    if not is_utf8(encoding):
        texts = [line.decode(encoding, "replace") for line in text.splitlines()]
        return pa.array(texts, pa.string())
    try:
        text.decode()
    except UnicodeDecodeError:
        text = text.decode(errors="replace").encode()
    if b"\r" in text:
        return pa.array(text.splitlines(), pa.binary()).cast(pa.string())
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n"))
    if not text.endswith(b"\n"):
        ends = np.append(ends, len(text))
    # Lines and line ends in turn, as texts over the same bytes.
    bounds = np.zeros(2 * len(ends) + 1, np.int32)
    bounds[1::2] = ends
    bounds[2::2] = np.minimum(ends + 1, len(text))
    both = pa.StringArray.from_buffers(2 * len(ends), pa.py_buffer(bounds), pa.py_buffer(text))
    return both.take(pa.array(np.arange(0, 2 * len(ends), 2)))


@dataclass(frozen=True, kw_only=True)
class FilePiece(Piece):
    """A part of a file."""

    path: str

    def read(self) -> Iterator[Records]:
        """Its records, numbered along the file."""
        first = self.first or 0
        for payloads in self.payloads():
            yield numbered(self.splits[0], payloads, first)
            first += len(payloads)

    def payloads(self) -> Iterator[Payloads]:
        """The payloads, some at a time."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class TextPiece(FilePiece):
    """Lines of a text from one byte up to another, or to its end; a gzipped one is whole."""

    encoding: str
    start: int = 0
    end: int | None = None

    def payloads(self) -> Iterator[Payloads]:
        """The lines."""
        return lines_of(self._chunks(), self.encoding)

    def count(self) -> int:
        """The lines between the two bytes, which are not decoded for that."""
        return count_lines(self._chunks())

    def _chunks(self) -> Iterator[bytes]:
        store, inside = filesystem(self.path)
        with open_stored(store, inside) as file:
            if is_packed(self.path):
                # Zeros behind the last member are padding.
                with gzip.GzipFile(fileobj=file) as text:
                    yield from iter(lambda: text.read(CHUNK_BYTES), b"")
                return
            file.seek(self.start)
            left = self.end - self.start if self.end is not None else None
            while chunk := file.read(CHUNK_BYTES if left is None else min(CHUNK_BYTES, left)):
                yield chunk
                left = None if left is None else left - len(chunk)


@dataclass(frozen=True, kw_only=True)
class ParquetPiece(FilePiece):
    """Row groups of a file, all of them where none are named."""

    wanted: Collection[str] | None
    groups: tuple[int, ...] | None = None

    def payloads(self) -> Iterator[Payloads]:
        """The rows as JSON objects."""
        return iter(parquet_records(self.path, self.wanted, self.groups))


@dataclass(frozen=True, kw_only=True)
class AvroPiece(FilePiece):
    """Blocks of a file between two bytes, or all of it."""

    wanted: Collection[str] | None
    span: tuple[int, int] | None = None

    def payloads(self) -> Iterator[Payloads]:
        """The records as JSON objects."""
        return avro_records(self.path, self.wanted, self.span)


def pieces_of(
    file: PlannedSplit, options: FileOptions, wanted: Collection[str] | None, most_bytes: int
) -> list[Piece]:
    """The pieces of a file in their order; one that is gone or damaged is found out by reading.

    `wanted` are the columns that the contract knows, in lower case.
    """
    whole = _whole(file, options, wanted)
    if file.weight <= most_bytes or is_packed(file.path):
        return [whole]
    try:
        return [*_cut(whole, most_bytes)]
    except Exception:
        # Cutting decodes a part of the file, and a decoder raises anything over damaged bytes.
        return [whole]


def _whole(
    file: PlannedSplit, options: FileOptions, wanted: Collection[str] | None
) -> TextPiece | ParquetPiece | AvroPiece:
    splits, weight, path = (file.name,), file.weight, file.path
    if file.format == "parquet":
        return ParquetPiece(splits=splits, weight=weight, path=path, wanted=wanted)
    if file.format == "avro":
        return AvroPiece(splits=splits, weight=weight, path=path, wanted=wanted)
    return TextPiece(splits=splits, weight=weight, path=path, encoding=options.encoding)


def _cut(whole: TextPiece | ParquetPiece | AvroPiece, most_bytes: int) -> Iterator[Piece]:
    match whole:
        case TextPiece():
            store, inside = filesystem(whole.path)
            with open_stored(store, inside) as file:
                starts = line_starts(file, most_bytes)
            ends = [*starts[1:], None]
            for start, end in zip(starts, ends, strict=True):
                weight = (whole.weight if end is None else end) - start
                first = None if start else 0
                yield replace(whole, start=start, end=end, weight=weight, first=first)
        case ParquetPiece():
            for groups, first, share in row_groups(whole.path, most_bytes / whole.weight):
                weight = int(whole.weight * share)
                yield replace(whole, groups=groups, first=first, weight=weight)
        case AvroPiece():
            for span, first, share in avro_spans(whole.path, most_bytes / whole.weight):
                yield replace(whole, span=span, first=first, weight=int(whole.weight * share))


ROWS: Final = 16_384
"""Rows that are decoded at once."""
BATCH_BYTES: Final = 8 << 20
"""About so many bytes are decoded at once, where rows are wide."""


def open_parquet(path: str) -> pq.ParquetFile:
    """Open a file; faults of its store are `StoreFault`."""
    store, inside = filesystem(path)
    # INT96 holds times beyond what nanoseconds can, so they are never made nanoseconds.
    return pq.ParquetFile(
        open_stored(store, inside),
        coerce_int96_timestamp_unit="us",
        # Where a writer gave its pages checksums: a flipped bit of a number is a number.
        page_checksum_verification=True,
    )


def parquet_records(
    path: str, wanted: Collection[str] | None, groups: Sequence[int] | None = None
) -> Iterator[TypedRecords]:
    """The rows of a file, or of some of its row groups, batch after batch.

    Raises:
        ValueError: a row group has another number of rows than it says; and whatever Arrow raises.
    """
    with open_parquet(path) as file:
        footer = file.metadata
        instants = {
            column.path
            for column in (footer.schema.column(n) for n in range(footer.num_columns))
            if column.physical_type == "INT96"
        }
        for number in range(footer.num_row_groups) if groups is None else groups:
            group = footer.row_group(number)
            a_row = group.total_byte_size // max(group.num_rows, 1)
            rows = max(1, min(ROWS, BATCH_BYTES // max(a_row, 1)))
            read = 0
            for batch in file.iter_batches(batch_size=rows, row_groups=[number]):
                read += batch.num_rows
                yield typed_records(batch, wanted, instants)
            if read != group.num_rows:
                raise ValueError(f"row group {number} has {read} rows instead of {group.num_rows}")


def row_groups(path: str, most: float) -> Iterator[tuple[tuple[int, ...], int, float]]:
    """Row groups that follow each other, up to this share of the file's rows, or one of them.

    Each with the number of rows before it, and its share.
    """
    with open_parquet(path) as file:
        counts = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    total = max(sum(counts), 1)
    groups: list[int] = []
    first = rows = 0
    for number, count in enumerate(counts):
        if groups and (rows + count) / total > most:
            yield tuple(groups), first, rows / total
            groups, first, rows = [], first + rows, 0
        groups.append(number)
        rows += count
    yield tuple(groups), first, rows / total
