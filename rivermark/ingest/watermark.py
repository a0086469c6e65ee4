"""The progress of an ingest in event time, as the splits before tell it.

The rows of a split (a file) are evaluated by the newest event time of *earlier* splits, so whether
a row is late is a function of the order of splits alone: it is the same however splits are grouped
into batches. Where an ingest has a watermark per producer, it is also one of their planned times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from typing import Any

from rivermark.ingest.producers import Producer, Producers
from rivermark.model.watermark import PerProducer


@dataclass(frozen=True)
class Progress:
    """The newest admitted event time so far (UTC), or None before the first.

    `doubted` remembers that the split before ran ahead by more than the contract's `max_jump`.
    `producers` are those of an ingest with a watermark for each, from the first split on.
    """

    newest: datetime | None = None
    doubted: bool = False
    producers: Producers | None = None

    def to_json(self) -> dict[str, Any]:
        """As it is kept in the metadata of a raw commit."""
        newest = self.newest.isoformat() if self.newest else None
        producers = {"producers": self.producers.to_json()} if self.producers else {}
        return {"newest": newest, "doubted": self.doubted} | producers

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Progress:
        """As `to_json` wrote it."""
        newest = datetime.fromisoformat(values["newest"]) if values.get("newest") else None
        producers = Producers.from_json(values["producers"]) if values.get("producers") else None
        return cls(newest, bool(values.get("doubted")), producers)

    def watermark(self, lateness: timedelta | None) -> datetime | None:
        """The watermark (UTC): rows at or before it are late. None before the first, or of dumps.

        What producers have reached is kept, whatever the lateness is now.
        """
        if lateness is None:
            return None
        if self.producers is not None:
            return self.producers.watermark
        return self.newest - lateness if self.newest else None

    def of(self, producer: str) -> Progress | None:
        """The progress of one producer; None where it was not heard yet."""
        known = self.producers.known.get(producer) if self.producers else None
        return Progress(known.newest, known.doubted) if known else None

    def after(
        self,
        heard: Mapping[str, Progress],
        marks: Mapping[str, datetime],
        at: datetime,
        rule: PerProducer,
        lateness: timedelta,
    ) -> Progress:
        """The progress after splits of the time `at`; `heard` is that of their producers.

        `marks` are the times up to which some of these said that they are complete. A stream that
        had one watermark goes on from it.
        """
        before = self.producers or Producers(at, at, self.watermark(lateness))
        now = max(before.now, at)
        former = {name: each.mark for name, each in before.known.items()}
        producers = {
            name: Producer(now, each.newest, each.doubted, later(former.get(name), marks.get(name)))
            for name, each in heard.items()
        }
        newest = reduce(later, [each.newest for each in heard.values()], self.newest)
        return Progress(newest, producers=before.after(producers, now, rule, lateness))


@dataclass(frozen=True)
class Bounds:
    """The bounds that the event times of one split's rows are compared with; None: no bound.

    Rows at or before `watermark` are late. Rows after `ceiling` run ahead of the stream and are
    quarantined. `after` is the watermark that the split left, where its admitted rows carry it. All
    are instants in UTC.
    """

    watermark: datetime | None = None
    ceiling: datetime | None = None
    after: datetime | None = None

    def to_json(self) -> list[str | None]:
        """As it is kept in the metadata of a raw commit."""
        moments = (self.watermark, self.ceiling, *([self.after] if self.after else []))
        return [t.isoformat() if t else None for t in moments]

    @classmethod
    def from_json(cls, values: list[str | None]) -> Bounds:
        """As `to_json` wrote it."""
        return cls(*(datetime.fromisoformat(t) if t else None for t in values))


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
    watermark = progress.watermark(lateness)
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
