"""Reading a source by offsets: a split is what lies between two of them."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from rivermark.ingest.source.payload import held
from rivermark.model.source import (
    Backlog,
    Discovery,
    Limit,
    Piece,
    PlannedSplit,
    PlanRows,
    SourceReader,
    Split,
    backlog_of,
)


class RangeReader(SourceReader):
    """Plans one range at a time; subclasses say where offsets begin, end, and what lies between.

    An offset is any value that JSON keeps. A range's number and both offsets are the split's path.

    A subclass with a `discover` of its own may use `_next`, the number of the next range; `_start`,
    the offset where that begins; and `_split`, which makes a split of a number and two offsets.
    """

    limit = Limit(splits=1)
    columns: Sequence[str] | None = None
    """The names in the payloads, where they are known."""
    capped = False
    """Whether `latest` may return an offset before the last record, so that no range is too large.

    Then `discover` asks on from there until `latest` returns its `start`. That must come to an end:
    not for a source where each call finds more, as by a clock.
    """

    def __init__(self) -> None:
        self._next = 0
        self._end: Any = None

    @abstractmethod
    def first(self) -> Any:
        """The offset before the first record."""

    @abstractmethod
    def latest(self, start: Any) -> Any:
        """The offset behind the last record that can be read now; `start` where there is none.

        With `capped` it may be the offset behind any record after `start`.
        """

    @abstractmethod
    def payloads(self, start: Any, end: Any) -> list[str]:
        """The records between two offsets, in their order; the same ones every time.

        Each is the text of one JSON object (`rivermark.ingest.source.payload.json_payload` makes it
        of a mapping). Read in the driver, all of a planned batch at once.
        """

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
        """Everything that can be read now, as one range, or as several where those are capped."""
        ready: list[Split] = []
        number, start = self._next, self._start()
        while (end := self.latest(start)) != start:
            ready.append(self._split(number, start, end))
            number, start = number + 1, end
            if not self.capped:
                break
        return Discovery(ready)

    def _start(self) -> Any:
        return self.first() if self._next == 0 else self._end

    def _split(self, number: int, start: Any, end: Any) -> Split:
        return Split(
            name=f"range-{number:012d}",
            path=json.dumps({"range": number, "start": start, "end": end}),
            size=self.size(start, end),
            modified_at=datetime.now(UTC),
            format="json",
            columns=json.dumps(self.columns) if self.columns is not None else None,
        )

    def pieces(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], most_bytes: int
    ) -> Sequence[Piece]:
        """The ranges, read in the driver."""
        positions = [self.position(split) for split in splits]
        return held(splits, [self.payloads(p["start"], p["end"]) for p in positions])

    def position(self, split: Split) -> dict[str, Any]:
        """The number and both offsets of a range."""
        position: dict[str, Any] = json.loads(split.path)
        return position

    def backlog(self) -> Backlog:
        """Measure the ranges that are not planned."""
        return backlog_of(self.discover())
