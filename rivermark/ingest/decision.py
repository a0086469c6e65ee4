"""The decision about the splits of a batch, made before any of its rows is written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import Any, Protocol

from rivermark.ingest.batch.base import Kind, Marked, ParsedBatch, SplitStatistics
from rivermark.ingest.split_outcomes import SplitOutcome
from rivermark.ingest.watermark import Bounds, Progress, evaluate_split, furthest
from rivermark.lake.batch_writer import TableWriter
from rivermark.model.source import PlannedSplit
from rivermark.model.stream import Ingest


@dataclass(frozen=True)
class Decision:
    """The destination of a batch's rows: a function of the batch and of the progress before it.

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
    """A split by its name, the number of its planned batch, and its time (UTC)."""

    @property
    def name(self) -> str:
        """The name, as in `_file`."""

    @property
    def batch(self) -> int:
        """The planned batch."""

    @property
    def modified_at(self) -> datetime:
        """The time at which it was written, by the plan."""


@dataclass(frozen=True)
class ReadBatch:
    """A batch that was read and parsed: its splits in order, their rows and their figures.

    `unreadable` are the batch's other splits, with the reason for each.
    """

    splits: Sequence[InBatch]
    rows: ParsedBatch
    statistics: Mapping[str, SplitStatistics]
    unreadable: Mapping[str, str]
    at: datetime


def decide(batch: ReadBatch, progress: Progress, ingest: Ingest) -> Decision:
    """Decide about a batch; writes nothing."""
    bounds, after = evaluate_splits(batch.splits, batch.statistics, batch.rows, progress, ingest)
    skipped = {name: s.skipped for name, s in batch.statistics.items() if s.skipped}
    return Decision(batch.at, bounds, batch.unreadable, after, skipped)


@dataclass(frozen=True)
class AdmissionPlan:
    """The destination of each row of a batch: the tables, beside them, or the place of others.

    Live admission, a file that is read again, and a replay of raw rows differ in what they do with
    it, and in nothing before. `marked` counts late rows and rows ahead of the stream, by split.
    """

    batch: ReadBatch
    decision: Decision
    marked: Marked

    @classmethod
    def of(cls, batch: ReadBatch, decision: Decision) -> AdmissionPlan:
        """The plan by a decision, made now or recorded; the rows are marked by it."""
        return cls(batch, decision, batch.rows.mark(decision.bounds))

    def outcome(self, split: PlannedSplit) -> SplitOutcome:
        """The outcome of a split's rows, in numbers."""
        if split.name in self.decision.unreadable:
            return SplitOutcome(split, reason=self.decision.unreadable[split.name])
        figures = self.batch.statistics.get(split.name, SplitStatistics())
        late, ahead = self.marked.get(split.name, (0, 0))
        quarantined = figures.quarantined + ahead
        admitted = figures.rows - quarantined - late
        skipped = self.decision.skipped.get(split.name, 0)
        return SplitOutcome(split, figures.rows, admitted, late, quarantined, skipped=skipped)

    def counts(self) -> dict[Kind, int]:
        """The numbers of rows by where they go."""
        late, ahead = (sum(n[place] for n in self.marked.values()) for place in (0, 1))
        figures = self.batch.statistics.values()
        quarantined = sum(split.quarantined for split in figures) + ahead
        rows = sum(split.rows for split in figures)
        return {"admitted": rows - quarantined - late, "late": late, "quarantined": quarantined}

    def write(self, writers: Mapping[Kind, TableWriter], batch: int) -> None:
        """Commit each row to the table that it goes to, once."""
        for kind, count in self.counts().items():
            if count:
                self.batch.rows.write(kind, writers[kind], batch)


def evaluate_splits(
    splits: Sequence[InBatch],
    statistics: Mapping[str, SplitStatistics],
    rows: ParsedBatch,
    progress: Progress,
    ingest: Ingest,
) -> tuple[dict[str, Bounds], Progress]:
    """The bounds of each split, by name, and the progress after the last one.

    Splits are evaluated in their order, each by the progress that the one before left; those of a
    source whose batches come together by the progress that the planned batch before left. With a
    watermark per producer what runs ahead does so of its own producer, and what is late of all.
    """
    bounds: dict[str, Bounds] = {}
    for group in _side_by_side(splits, together=ingest.source.together):
        if ingest.watermark is None:
            reached = []
            for split in group:
                bounds[split.name], after = _evaluate(
                    split.name, statistics, rows, progress, ingest
                )
                reached.append(after)
            progress = furthest(progress, reached)
        else:
            own, progress = _by_producer(group, statistics, rows, progress, ingest)
            bounds |= own
    return bounds, progress


def _evaluate(
    name: str,
    statistics: Mapping[str, SplitStatistics],
    rows: ParsedBatch,
    progress: Progress,
    ingest: Ingest,
) -> tuple[Bounds, Progress]:
    """The bounds of a split after that progress, and the progress that it leaves."""
    jump = ingest.contract.max_jump
    figures = statistics.get(name, SplitStatistics())
    below = figures.newest
    ceiling = progress.newest + jump if progress.newest and jump else None
    if ceiling and figures.newest and figures.newest > ceiling:
        below = rows.newest_until(name, ceiling)
    return evaluate_split(progress, figures.oldest, below, figures.newest, ingest.lateness, jump)


def _by_producer(
    group: Sequence[InBatch],
    statistics: Mapping[str, SplitStatistics],
    rows: ParsedBatch,
    progress: Progress,
    ingest: Ingest,
) -> tuple[dict[str, Bounds], Progress]:
    """The bounds of splits side by side, each by its producer's progress and one watermark."""
    assert ingest.watermark is not None  # noqa: S101 - the caller's case
    assert ingest.lateness is not None  # noqa: S101 - checked by the declaration
    watermark = progress.watermark(ingest.lateness)
    bounds: dict[str, Bounds] = {}
    heard: dict[str, Progress] = {}
    marks: dict[str, datetime] = {}

    def producer_of(split: InBatch) -> str:
        return ingest.source.producer(split.name)

    for producer, splits in groupby(sorted(group, key=producer_of), key=producer_of):
        known = progress.of(producer)
        before, reached = known or Progress(), []
        for split in splits:
            own, after = _evaluate(split.name, statistics, rows, before, ingest)
            bounds[split.name] = replace(own, watermark=watermark)
            reached.append(after)
            mark = _mark_of(split.name, own, statistics, rows)
            if mark is not None:
                marks[producer] = max(mark, marks.get(producer, mark))
        moved = furthest(before, reached)
        if known is None or moved is not before:
            heard[producer] = moved
    at = max(split.modified_at for split in group)
    progress = progress.after(heard, marks, at, ingest.watermark, ingest.lateness)
    left = progress.watermark(ingest.lateness)
    return {name: replace(own, after=left) for name, own in bounds.items()}, progress


def _mark_of(
    name: str,
    bounds: Bounds,
    statistics: Mapping[str, SplitStatistics],
    rows: ParsedBatch,
) -> datetime | None:
    """The latest mark of a split's rows; those that run ahead are quarantined, and say nothing."""
    figures = statistics.get(name, SplitStatistics())
    if figures.mark and bounds.ceiling and figures.newest and figures.newest > bounds.ceiling:
        return rows.mark_until(name, bounds.ceiling)
    return figures.mark


def _side_by_side(splits: Sequence[InBatch], *, together: bool) -> Iterator[list[InBatch]]:
    """The splits that are evaluated by the same progress."""
    if not together:
        yield from ([split] for split in splits)
        return
    for _, group in groupby(splits, key=lambda split: split.batch):
        yield [*group]
