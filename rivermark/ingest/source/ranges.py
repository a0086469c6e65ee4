"""Reading a source by offsets: a split is what lies between two of them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from rivermark.ingest.source.payload import driver_records
from rivermark.model.source import (
    Backlog,
    Discovery,
    Limit,
    PlannedSplit,
    PlanRows,
    Records,
    SourceReader,
    Split,
    backlog_of,
)


class RangeReader(SourceReader):
    """Plans one range at a time; subclasses say where offsets begin, end, and what lies between.

    An offset is any value that JSON keeps. A range's number and both offsets are the split's path.
    """

    limit = Limit(splits=1)
    columns: Sequence[str] | None = None
    """The names in the payloads, where they are known."""

    def __init__(self) -> None:
        self._next = 0
        self._end: Any = None

    @abstractmethod
    def first(self) -> Any:
        """The offset before the first record."""

    @abstractmethod
    def latest(self, start: Any) -> Any:
        """The offset behind the last record that can be read now; `start` where there is none."""

    @abstractmethod
    def payloads(self, start: Any, end: Any) -> list[str]:
        """The records between two offsets as JSON, in their order; the same ones every time."""

    def size(self, start: Any, end: Any) -> int:
        """Bytes between two offsets, approximately; 0 where that is unknown."""
        return 0

    def restore(self, plan: PlanRows) -> None:
        """Continue behind the range with the highest number."""
        newest = max(plan("name", "path"), default=None)
        if newest is not None:
            self._continue(newest[1])

    def planned(self, splits: Sequence[Split]) -> None:
        """Continue behind the last one."""
        for split in splits:
            self._continue(split.path)

    def _continue(self, path: str) -> None:
        position = json.loads(path)
        self._next, self._end = position["range"] + 1, position["end"]

    def discover(self, *, full: bool = True) -> Discovery:
        """Everything that can be read now, as one range."""
        start = self.first() if self._next == 0 else self._end
        end = self.latest(start)
        if end == start:
            return Discovery()
        split = Split(
            name=f"range-{self._next:012d}",
            path=json.dumps({"range": self._next, "start": start, "end": end}),
            size=self.size(start, end),
            modified_at=datetime.now(UTC),
            format="json",
            columns=json.dumps(self.columns) if self.columns is not None else None,
        )
        return Discovery([split])

    def read(self, spark: SparkSession, splits: Sequence[PlannedSplit], *, small: bool) -> Records:
        """Read the ranges in the driver."""
        positions = [self.position(split) for split in splits]
        return driver_records([self.payloads(p["start"], p["end"]) for p in positions])

    def position(self, split: Split) -> dict[str, Any]:
        """The number and both offsets of a range."""
        position: dict[str, Any] = json.loads(split.path)
        return position

    def backlog(self) -> Backlog:
        """Whether there is a range that is not planned."""
        return backlog_of(self.discover())
