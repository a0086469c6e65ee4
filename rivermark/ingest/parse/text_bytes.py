"""Bytes of many texts, searched together: Arrow's kernels search text by text."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Bytes = npt.NDArray[np.uint8]
REPLACED: Final = "\ufffd"


def bytes_of(texts: pa.StringArray) -> Bytes:
    """The bytes of all texts, one text behind the other."""
    _, offsets, data = texts.buffers()
    if not len(texts) or data is None:
        return np.empty(0, np.uint8)
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data, np.uint8)[ends[0] : ends[-1]]


def lengths_of(texts: pa.StringArray) -> npt.NDArray[np.int32]:
    """The bytes of each text; of a null any number."""
    offsets = np.frombuffer(texts.buffers()[1], np.int32)
    return np.diff(offsets[texts.offset : texts.offset + len(texts) + 1])


def holds(data: Bytes, wanted: bytes) -> bool:
    """Returns True if some bytes stand in a row, be it from the end of one text to the next."""
    at = np.flatnonzero(data[: len(data) - len(wanted) + 1] == wanted[0])
    for n, byte in enumerate(wanted[1:], 1):
        if not len(at):
            return False
        at = at[data[at + n] == byte]
    return len(at) > 0


def with_text(texts: pa.StringArray, wanted: str) -> pa.BooleanArray | None:
    """Mask of the texts that hold another one; None where none does."""
    if not holds(bytes_of(texts), wanted.encode()):
        return None
    return pc.match_substring(texts, wanted)


class ByteSet:
    """Bytes of which texts may consist."""

    def __init__(self, allowed: bytes) -> None:
        self._allowed = np.zeros(256, np.bool_)
        self._allowed[[*allowed]] = True

    def has_all(self, data: Bytes) -> bool:
        """Returns True if there are no others."""
        return bool(self._allowed[data].all())


def has_exponent(data: Bytes) -> bool:
    """Returns True if an e stands before a digit or a sign, as in numbers."""
    at = np.flatnonzero((data[:-1] == ord("e")) | (data[:-1] == ord("E")))
    behind = data[at + 1]
    return bool((behind - np.uint8(48) < 10).any() or (behind == 43).any() or (behind == 45).any())


def has_blank(texts: pa.StringArray) -> bool:
    """Returns True if a text may be empty, or consist of spaces."""
    lengths = lengths_of(texts)
    if np.count_nonzero(lengths == 0) > texts.null_count:
        return True
    return bool((bytes_of(texts) == 32).any())
