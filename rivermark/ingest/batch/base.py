"""A parsed batch as admission handles it: its figures, its marks, and where its rows go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa

from rivermark.ingest.watermark import Bounds, later
from rivermark.lake.batch_writer import TableWriter
from rivermark.model.stream import Ingest
from rivermark.model.watermark import WATERMARK_AFTER

Kind: TypeAlias = Literal["raw", "admitted", "late", "quarantined"]
"""The tables that a row goes to: raw, and one of the others."""
Marked: TypeAlias = "Mapping[str, tuple[int, int]]"
"""Late rows and rows ahead of the stream, by split."""
AHEAD: Final = "event_time_ahead_of_stream"
"""The reason of a row that runs ahead of the stream by more than `max_jump`."""


@dataclass
class SplitStatistics:
    """A split in figures: its records, those quarantined, the span of valid event times (UTC).

    `skipped` counts what is no event: header lines and empty ones, tombstones. `mark` is the latest
    time up to which one of the valid rows says that its producer is complete.
    """

    rows: int = 0
    quarantined: int = 0
    skipped: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    mark: datetime | None = None

    def add(self, other: SplitStatistics) -> None:
        """Add the figures of another part of the split."""
        self.rows += other.rows
        self.quarantined += other.quarantined
        self.skipped += other.skipped
        self.oldest = _pick(min, self.oldest, other.oldest)
        self.newest = later(self.newest, other.newest)
        self.mark = later(self.mark, other.mark)


@dataclass(frozen=True)
class RowShape:
    """The facts about an ingest's rows that divide them. It may be pickled.

    `time` is the column of event times, `mark` that of marks, `columns` are those of the admitted
    table; where it `carries` the watermark that the row's split left, that column comes behind.
    Streams that read the table wait for rows by `lateness`; of dumps there are none.
    """

    time: str
    mark: str | None
    lateness: timedelta | None
    columns: tuple[str, ...]
    carries: bool

    @classmethod
    def of(cls, ingest: Ingest) -> RowShape:
        """The shape of an ingest's rows."""
        columns = ingest.admitted.schema.fieldNames()
        return cls(
            time=ingest.contract.event_time,
            mark=ingest.watermark.mark if ingest.watermark else None,
            lateness=ingest.lateness,
            columns=tuple(name for name in columns if name != WATERMARK_AFTER.name),
            carries=WATERMARK_AFTER.name in columns,
        )


class ParsedBatch(ABC):
    """The rows of one batch after parsing: first its figures, then `mark`, then what is written."""

    @abstractmethod
    def statistics(self) -> Mapping[str, SplitStatistics]:
        """Each split in figures, by its name."""

    @abstractmethod
    def newest_until(self, split: str, ceiling: datetime) -> datetime | None:
        """The newest valid event time of a split at or before the ceiling."""

    @abstractmethod
    def mark_until(self, split: str, ceiling: datetime) -> datetime | None:
        """The latest mark of the valid rows of a split at or before the ceiling."""

    @abstractmethod
    def mark(self, bounds: Mapping[str, Bounds]) -> Marked:
        """Mark rows as late or ahead by the bounds of their splits; counts both, by split."""

    @abstractmethod
    def rows(self, kind: Kind) -> pa.Table:
        """The rows of a kind, in the driver."""

    @abstractmethod
    def write(
        self, kind: Kind, writer: TableWriter, batch: int, metadata: dict[str, Any] | None = None
    ) -> None:
        """Commit the rows of a kind, once."""

    def close(self) -> None:  # noqa: B027 - batches in memory hold nothing
        """Release what is held, and remove what was written and not committed."""


def may_exceed(statistics: SplitStatistics | None, bounds: Bounds) -> bool:
    """Returns True if a split can hold late rows or rows ahead, by its span of event times."""
    if statistics is None or statistics.oldest is None or statistics.newest is None:
        return False
    behind = bounds.watermark is not None and statistics.oldest <= bounds.watermark
    ahead = bounds.ceiling is not None and statistics.newest > bounds.ceiling
    return behind or ahead


def _pick(
    choose: Callable[[datetime, datetime], datetime], left: datetime | None, right: datetime | None
) -> datetime | None:
    if left is None or right is None:
        return left or right
    return choose(left, right)
