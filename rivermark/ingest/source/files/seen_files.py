"""The files that were planned already: by name, with their size, in 24 bytes each."""

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

    A file a second is 31 million a year, and a process serves several ingests: a million names of
    44 characters take 31 to 44 MB, where a dict takes 184 MB. Two names of one digest would hide
    the second file; among 100 million names the odds are one in 10^22.
    """

    def __init__(self, files: Iterable[tuple[str, int]] = ()) -> None:
        self._recent: dict[str, int] = {}
        self._sorted: npt.NDArray[Any] = np.empty(0, ROW)
        for name, size in files:
            self.add(name, size)

    def __len__(self) -> int:
        """Number of files that were planned."""
        return len(self._sorted) + len(self._recent)

    def __contains__(self, name: object) -> bool:
        """Returns True if a file of that name was planned."""
        return isinstance(name, str) and self.size_of(name) is not None

    def add(self, name: str, size: int) -> None:
        """Remember a file."""
        self._recent[name] = size
        if len(self._recent) >= RECENT:
            rows = [(*digest(name), size) for name, size in self._recent.items()]
            # The newest first: of a file that was read again the size then counts. Stable sorting
            # takes what is sorted already as it is; sorting the rows themselves would compare them
            # one by one.
            joined = np.concatenate([np.array(rows, ROW), self._sorted])
            self._sorted = joined[np.argsort(joined["high"], kind="stable")]
            self._recent = {}

    def size_of(self, name: str) -> int | None:
        """The size with which a file was planned, or None for one that was not."""
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
    digested = blake2b(name.encode(errors="surrogateescape"), digest_size=16).digest()
    return int.from_bytes(digested[:8], "little"), int.from_bytes(digested[8:], "little")
