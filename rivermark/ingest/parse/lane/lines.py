"""Lines in one buffer, and parts of them by place: what the lane looks at, many rows at a time.

Bytes are compared as 64-bit words, so that a step costs a few machine instructions a row. Places
are numbers of bytes from the buffer's start.
"""

from __future__ import annotations

from copy import copy
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

WINDOW: Final = 32
"""Bytes of a value that are looked at together; no number and no time is longer."""
PADDING: Final = 64
"""Zero bytes behind the last line, so that a window can begin at its end."""
REPLACED: Final = b"\xef"
"""The first byte of U+FFFD, and of the byte order mark; no other common text begins so."""

LOW: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
HIGH: Final = np.uint64(0x8080808080808080)
ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
ZERO: Final = np.int64(0)
EIGHT: Final = np.int64(8)
KEEP: Final = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)
"""By a number of bytes: the word's first so many."""


def each_byte(byte: int) -> np.uint64:
    """A word of the same byte eight times."""
    return np.uint64(byte * 0x0101010101010101)


def equal_bytes(words: Words, byte: int) -> Words:
    """The high bit of each byte that equals, and no other bit."""
    differs = words ^ each_byte(byte)
    return ~(((differs & LOW) + LOW) | differs | LOW)


def kept(lengths: Places, word: int) -> Words:
    """Masks of what belongs to values of such lengths in their first, second, ... word."""
    rest = lengths - 8 * word if word else lengths
    masks: Words = KEEP.take(np.minimum(np.maximum(rest, ZERO), EIGHT))
    return masks


def first_byte(marks: Words) -> Places:
    """Which byte of a word is the first with its high bit set; 8 for none."""
    return (np.bitwise_count(~marks & (marks - np.uint64(1))) >> 3).astype(np.int64)


class Lines:
    """Some lines of a batch: their bytes, and where each begins and ends."""

    def __init__(self, payloads: pa.StringArray) -> None:
        """Take lines, none of them null."""
        _, offsets, data = payloads.buffers()
        count, first = len(payloads), payloads.offset
        places = np.frombuffer(offsets, np.int32, count + 1, first * 4).astype(np.int64)
        begin, end = int(places[0]), int(places[-1])
        text = memoryview(data)[begin:end] if data is not None else b""
        self._text = b"".join((text, bytes(PADDING)))
        self.bytes = np.frombuffer(self._text, np.uint8)
        self.starts: Places = places[:-1] - begin
        self.ends: Places = places[1:] - begin
        self._views: dict[int, Any] = {}

    def __len__(self) -> int:
        return len(self.starts)

    def windows(self, places: Places, words: int = WINDOW // 8) -> Words:
        """So many words from each place on, a column each."""
        if words not in self._views:
            size = 8 * words
            self._views[words] = np.ndarray(
                (len(self.bytes) - size + 1,), f"V{size}", self.bytes.data, strides=(1,)
            )
        rows: Words = self._views[words][places].view(np.uint64)
        return rows.reshape(len(places), words).T

    def stands(self, places: Places, piece: bytes) -> Mask:
        """Where, of these places, a piece of text stands."""
        stands: Mask = np.ones(len(places), np.bool_)
        for first in range(0, len(piece), WINDOW):
            part = piece[first : first + WINDOW]
            count = -(-len(part) // 8)
            wanted = np.frombuffer(part.ljust(8 * count, b"\0"), np.uint64)
            at = np.minimum(places + first, len(self.bytes) - 8 * count) if first else places
            for n, word in enumerate(self.windows(at, count)):
                stands &= word & KEEP[min(len(part) - 8 * n, 8)] == wanted[n]
        return stands

    def take(self, rows: Places) -> Lines:
        """Some of the lines, of the same bytes."""
        some = copy(self)
        some.starts, some.ends = self.starts[rows], self.ends[rows]
        return some

    def text_of(self, row: int) -> bytes:
        """A line."""
        return self.bytes[self.starts[row] : self.ends[row]].tobytes()

    def holds(self, byte: bytes) -> Mask | None:
        """Which lines hold a byte; None where none does."""
        if self._text.find(byte) < 0:
            return None
        return self._marked(self.places_of(byte[0]))

    def with_control(self) -> Mask | None:
        """Which lines hold a control character; None where none does."""
        text = self.bytes[: len(self.bytes) - PADDING]
        if not text.size or text.min() >= 32:
            return None
        return self._marked(np.flatnonzero(text < 32))

    def _marked(self, places: Places) -> Mask:
        counts = np.searchsorted(places, self.ends) - np.searchsorted(places, self.starts)
        return counts > 0

    def places_of(self, byte: int) -> Places:
        """Where a byte stands, in all lines."""
        return np.flatnonzero(self.bytes[: len(self.bytes) - PADDING] == byte)

    @cached_property
    def has_zeros(self) -> bool:
        """Whether any line holds a zero byte."""
        return self._text.find(b"\0", 0, len(self._text) - PADDING) >= 0

    @cached_property
    def quotes(self) -> Places:
        """Where quotes stand, in all lines."""
        return self.places_of(0x22)

    def texts(self, starts: Places, ends: Places, absent: Mask) -> pa.StringArray:
        """Copies of the parts, null where they are absent; in the order of their lines."""
        count = len(starts)
        # Parts and what lies between them, in turn: an array of texts over the same bytes.
        bounds = np.empty(2 * count + 1, np.int32)
        bounds[0:-1:2] = np.where(absent, self.starts, starts)
        bounds[1::2] = np.where(absent, self.starts, ends)
        bounds[-1] = len(self.bytes)
        both = pa.StringArray.from_buffers(
            2 * count, pa.py_buffer(bounds), pa.py_buffer(self.bytes)
        )
        return both.take(pa.array(np.arange(0, 2 * count, 2), mask=absent))
