"""The longest line of a text that comes piece by piece."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class LongestLine:
    """Measures a text that is never held; lines end with LF, CR or CR LF.

    `length` is the longest line in bytes, as far as it exceeds a piece: a line that lies within one
    is not looked at.
    """

    length: int = 0
    _open: int = 0

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        last = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
        if last < 0:
            self._open += len(piece)
        else:
            ends = [place for end in (b"\n", b"\r") if (place := piece.find(end)) >= 0]
            self.length = max(self.length, self._open + min(ends))
            self._open = len(piece) - last - 1
        self.length = max(self.length, self._open)
