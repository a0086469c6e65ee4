"""The files that were read already: by name, with their size, in 24 bytes each."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import numpy.typing as npt

RECENT: Final = 20_000
"""So many names are kept as they are before their digests are sorted in among the others."""

ROW: Final = np.dtype([("high", "<u8"), ("low", "<u8"), ("size", "<i8")])


class SeenFiles:
    """Names and sizes of millions of files: a name is kept as a digest of 128 bits.

    Two names of one digest would hide the second file; among 100 million names the odds are one in
    10^22.
    """

    def __init__(self, found: Iterable[tuple[str, int]] = ()) -> None:
        """Begin with these names and sizes."""
        self._recent: dict[str, int] = {}
        self._sorted: npt.NDArray[Any] = np.empty(0, ROW)
        for name, size in found:
            self.add(name, size)

    def __len__(self) -> int:
        """How many files are known."""
        return len(self._sorted) + len(self._recent)

    def __contains__(self, name: object) -> bool:
        """Whether a file of that name was read."""
        return isinstance(name, str) and self.size_of(name) is not None

    def add(self, name: str, size: int) -> None:
        """Remember a file that was not known."""
        self._recent[name] = size
        if len(self._recent) >= RECENT:
            rows = [(*digest(name), size) for name, size in self._recent.items()]
            self._sorted = np.concatenate([self._sorted, np.array(rows, ROW)])
            self._sorted.sort(order="high")
            self._recent = {}

    def size_of(self, name: str) -> int | None:
        """The size with which a file was read, or None for one that was not."""
        recent = self._recent.get(name)
        if recent is not None or not len(self._sorted):
            return recent
        high, low = digest(name)
        place = int(np.searchsorted(self._sorted["high"], np.uint64(high)))
        while place < len(self._sorted) and int(self._sorted["high"][place]) == high:
            if int(self._sorted["low"][place]) == low:
                return int(self._sorted["size"][place])
            place += 1
        return None


def digest(name: str) -> tuple[int, int]:
    """A name in 128 bits; names from a disk may hold bytes that are no text."""
    found = blake2b(name.encode(errors="surrogateescape"), digest_size=16).digest()
    return int.from_bytes(found[:8], "little"), int.from_bytes(found[8:], "little")
