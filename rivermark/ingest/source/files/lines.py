"""The lines of a text that comes chunk by chunk, by the three line ends: LF, CR and CR LF."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from io import BufferedReader
from typing import Final

import numpy as np
import pyarrow as pa

from rivermark.ingest.source.files.options import is_utf8

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
