"""Time zones as tables of their changes, so that many wall-clock times are read at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rivermark.ingest.parse.lane.lines import Mask, Places


@dataclass(frozen=True)
class Change:
    """A change of a zone's offset: when (seconds since 1970), and the offsets before and after."""

    at: int
    before: int
    after: int


class Zone:
    """A zone between two instants (seconds since 1970), by its changes there."""

    def __init__(self, since: int, until: int, offset: int, changes: Sequence[Change]) -> None:
        """Take the offset at the beginning, and the changes after it."""
        walls = [(c.at + c.before, c.at + c.after) for c in changes]
        self._begin = np.array([min(pair) for pair in walls] + [until], np.int64)
        self._end = np.array([max(pair) for pair in walls], np.int64)
        self._at = np.array([c.at for c in changes], np.int64)
        self._offsets = np.array([offset, *(c.after for c in changes)], np.int64)
        self._since, self._until = since, until

    def offsets(self, walls: Places) -> tuple[Places, Mask]:
        """The seconds east of UTC at wall-clock times, and which are outside of every change."""
        past = np.searchsorted(self._end, walls, side="right")
        clear: Mask = (walls < self._begin[past]) & (walls >= self._since)
        return self._offsets[past], clear

    def offsets_at(self, instants: Places) -> tuple[Places, Mask]:
        """The seconds east of UTC at instants, and which of them the table covers."""
        covered: Mask = (instants >= self._since) & (instants < self._until)
        return self._offsets[np.searchsorted(self._at, instants, side="right")], covered
