"""What is decided about the splits of a batch, before any of its rows is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import Any, Protocol

from rivermark.ingest.batch.base import ParsedBatch
from rivermark.ingest.split_statistics import SplitStatistics
from rivermark.ingest.watermark import Bounds, Progress, evaluate_split, furthest
from rivermark.model.source import PlannedSplit
from rivermark.model.stream import Ingest


@dataclass(frozen=True)
class Decision:
    """Where the rows of a batch go: a function of the batch and of the progress before it.

    `bounds` decide about rows, by split; `unreadable` are splits quarantined as a whole, with their
    reasons; `skipped` counts what became no row, by split. `progress` is the event time after the
    batch, `at` when the batch was read (UTC). It is written beside the raw rows, so that a replay
    repeats it instead of deciding again.
    """

    at: datetime
    bounds: Mapping[str, Bounds]
    unreadable: Mapping[str, str]
    progress: Progress
    skipped: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As it is recorded in the metadata of a raw commit."""
        skipped = {"skipped": dict(self.skipped)} if self.skipped else {}
        return skipped | {
            "clock": self.progress.to_json(),
            "verdicts": {name: bounds.to_json() for name, bounds in self.bounds.items()},
            "unread": dict(self.unreadable),
            "at": self.at.isoformat(),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Decision:
        """As `to_json` wrote it."""
        return cls(
            at=datetime.fromisoformat(values["at"]),
            bounds={name: Bounds.from_json(v) for name, v in values["verdicts"].items()},
            unreadable=values["unread"],
            progress=Progress.from_json(values["clock"]),
            skipped=values.get("skipped", {}),
        )


class InBatch(Protocol):
    """A split by its name and the number of its planned batch."""

    @property
    def name(self) -> str:
        """The name, as in `_file`."""

    @property
    def batch(self) -> int:
        """The planned batch."""


@dataclass(frozen=True)
class ReadBatch:
    """A batch that was read and parsed: its splits in order, their rows and their figures.

    `unreadable` are the batch's other splits, with the reason for each.
    """

    splits: Sequence[PlannedSplit]
    rows: ParsedBatch
    statistics: Mapping[str, SplitStatistics]
    unreadable: Mapping[str, str]
    at: datetime


def decide(batch: ReadBatch, progress: Progress, ingest: Ingest) -> Decision:
    """Decide about a batch; writes nothing."""
    bounds, after = evaluate_splits(batch.splits, batch.statistics, batch.rows, progress, ingest)
    skipped = {name: s.skipped for name, s in batch.statistics.items() if s.skipped}
    return Decision(batch.at, bounds, batch.unreadable, after, skipped)


def evaluate_splits(
    splits: Sequence[InBatch],
    statistics: Mapping[str, SplitStatistics],
    rows: ParsedBatch,
    progress: Progress,
    ingest: Ingest,
) -> tuple[dict[str, Bounds], Progress]:
    """The bounds of each split, by name, and the progress after the last one.

    Splits are evaluated in their order, each by the progress that the one before left; those of a
    source whose batches come together by the progress that the planned batch before left.
    """
    jump = ingest.contract.max_jump
    bounds: dict[str, Bounds] = {}
    for group in _side_by_side(splits, together=ingest.source.together):
        reached = []
        for name in group:
            figures = statistics.get(name, SplitStatistics())
            below = figures.newest
            ceiling = progress.newest + jump if progress.newest and jump else None
            if ceiling and figures.newest and figures.newest > ceiling:
                below = rows.newest_until(name, ceiling)
            bounds[name], after = evaluate_split(
                progress, figures.oldest, below, figures.newest, ingest.lateness, jump
            )
            reached.append(after)
        progress = furthest(progress, reached)
    return bounds, progress


def _side_by_side(splits: Sequence[InBatch], *, together: bool) -> Iterator[list[str]]:
    """The names of the splits that are evaluated by the same progress."""
    if not together:
        yield from ([split.name] for split in splits)
        return
    for _, group in groupby(splits, key=lambda split: split.batch):
        yield [split.name for split in group]
