"""What is decided about the splits of a batch, before any of its rows is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from rivermark.ingest.batch.base import ParsedBatch
from rivermark.ingest.split_statistics import SplitStatistics
from rivermark.ingest.watermark import Bounds, Progress, evaluate_split
from rivermark.model.source import PlannedSplit
from rivermark.model.stream import Ingest


@dataclass(frozen=True)
class Decision:
    """Where the rows of a batch go: a function of the batch and of the progress before it.

    `bounds` decide about rows, by split; `unreadable` are splits quarantined as a whole, with their
    reasons. `progress` is the event time after the batch, `at` when the batch was read (UTC). It is
    written beside the raw rows, so that a replay repeats it instead of deciding again.
    """

    at: datetime
    bounds: Mapping[str, Bounds]
    unreadable: Mapping[str, str]
    progress: Progress

    def to_json(self) -> dict[str, Any]:
        """As it is recorded in the metadata of a raw commit."""
        return {
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
        )


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
    names = [split.name for split in batch.splits]
    bounds, after = evaluate_splits(names, batch.statistics, batch.rows, progress, ingest)
    return Decision(batch.at, bounds, batch.unreadable, after)


def evaluate_splits(
    splits: Sequence[str],
    statistics: Mapping[str, SplitStatistics],
    rows: ParsedBatch,
    progress: Progress,
    ingest: Ingest,
) -> tuple[dict[str, Bounds], Progress]:
    """The bounds of each split, by name, and the progress after the last one.

    Splits are evaluated in their order, each by the progress that the one before left.
    """
    jump = ingest.contract.max_jump
    bounds: dict[str, Bounds] = {}
    for name in splits:
        figures = statistics.get(name, SplitStatistics())
        below = figures.newest
        if jump and progress.newest and figures.newest and figures.newest > progress.newest + jump:
            below = rows.newest_until(name, progress.newest + jump)
        bounds[name], progress = evaluate_split(
            progress, figures.oldest, below, figures.newest, ingest.lateness, jump
        )
    return bounds, progress
