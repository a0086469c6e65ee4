"""How far an ingest has come in event time, as the splits before tell it.

The rows of a split (a file) are evaluated by the newest event time of *earlier* splits, so whether
a row is late is a function of the order of splits alone: it is the same however splits are grouped
into batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import reduce
from typing import Any


@dataclass(frozen=True)
class Progress:
    """The newest admitted event time so far (UTC), or None before the first.

    `doubted` remembers that the split before ran ahead by more than the contract's `max_jump`.
    """

    newest: datetime | None = None
    doubted: bool = False

    def to_json(self) -> dict[str, Any]:
        """As it is kept in the metadata of a raw commit."""
        newest = self.newest.isoformat() if self.newest else None
        return {"newest": newest, "doubted": self.doubted}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Progress:
        """As `to_json` wrote it."""
        newest = datetime.fromisoformat(values["newest"]) if values.get("newest") else None
        return cls(newest, bool(values.get("doubted")))


@dataclass(frozen=True)
class Bounds:
    """The bounds that the event times of one split's rows are compared with; None: no bound.

    Rows at or before `watermark` are late. Rows after `ceiling` run ahead of the stream and are
    quarantined. Both are instants in UTC.
    """

    watermark: datetime | None = None
    ceiling: datetime | None = None

    def to_json(self) -> list[str | None]:
        """As it is kept in the metadata of a raw commit."""
        return [t.isoformat() if t else None for t in (self.watermark, self.ceiling)]

    @classmethod
    def from_json(cls, values: list[str | None]) -> Bounds:
        """As `to_json` wrote it."""
        watermark, ceiling = (datetime.fromisoformat(t) if t else None for t in values)
        return cls(watermark, ceiling)


def evaluate_split(
    progress: Progress,
    oldest: datetime | None,
    newest_below: datetime | None,
    newest: datetime | None,
    lateness: timedelta | None,
    max_jump: timedelta | None,
) -> tuple[Bounds, Progress]:
    """The bounds of a split's rows, and the progress after it.

    `oldest` and `newest` are the split's valid event times; `newest_below` is the newest that is
    not beyond `progress.newest + max_jump`. Where even the oldest row is beyond, the whole split
    jumps: the first such split is doubted and quarantined, the second in a row is believed.
    """
    watermark = progress.newest - lateness if progress.newest and lateness is not None else None
    if newest is None:
        return Bounds(watermark), progress
    if max_jump is None or progress.newest is None:
        return Bounds(watermark), Progress(later(progress.newest, newest))
    ceiling = progress.newest + max_jump
    jumps = oldest is not None and oldest > ceiling
    if jumps and progress.doubted:
        return Bounds(watermark), Progress(newest)
    if jumps:
        return Bounds(watermark, ceiling), replace(progress, doubted=True)
    return Bounds(watermark, ceiling), Progress(later(progress.newest, newest_below))


def furthest(before: Progress, reached: Sequence[Progress]) -> Progress:
    """The progress after splits that were evaluated side by side, each from the one before them."""
    moved = [progress for progress in reached if progress is not before]
    if not moved:
        return before
    newest = reduce(later, [progress.newest for progress in moved])
    return Progress(newest, any(progress.doubted for progress in moved))


def later(left: datetime | None, right: datetime | None) -> datetime | None:
    """The later of two instants, either of which may be missing."""
    if left is None or right is None:
        return left or right
    return max(left, right)


def utc(moment: datetime | None) -> datetime | None:
    """A moment that Spark returned without a zone (its session is in UTC), with it."""
    return moment.replace(tzinfo=UTC) if moment and moment.tzinfo is None else moment
