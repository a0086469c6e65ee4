"""Folding: the late rows of closed days are taken in, and what follows from them computed again.

In the order of the lineage: first the admitted tables of all ingests, then each stream below for
the days that may differ. A day that its stream has not closed yet is owed: the next fold after it
is closed computes it. The live streams go on meanwhile and skip these commits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING
from uuid import uuid4

from deltalake import DeltaTable

from rivermark.backfill.affected_days import Changed, DaysByStream, of_hours
from rivermark.backfill.downstream import Below, Tell, compute_below, payable
from rivermark.backfill.late.days import LateDay, mergeable
from rivermark.backfill.late.merge import MergedDay, merge_day
from rivermark.backfill.late.merged import newest_merged
from rivermark.backfill.pending import (
    FOLDS,
    Begun,
    Done,
    begin,
    debts,
    finish,
    identity,
    open_causes,
    pending_days,
    settled_through,
    unfinished_merges,
)
from rivermark.lake.lake import Lake
from rivermark.lake.locks import try_merge_lock
from rivermark.lake.schema import create_table
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Ingest
from rivermark.model.topology import Topology
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.backfill.replace_changed import RecomputedTable


@dataclass
class MergeReport:
    """What a fold did: days of ingests, tables that were computed again, and what is left.

    `owed` days are computed by the fold after they are closed; `blocked` says, by stream, why days
    that are closed could not be published. `follow` are refreshed tables, which notice the new rows
    by themselves when they run. `taken_up` counts folds that a kill had broken
    off and that are finished now.
    """

    fold: str
    days: list[MergedDay] = field(default_factory=list)
    recomputed: list[RecomputedTable] = field(default_factory=list)
    owed: DaysByStream = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)
    follow: list[str] = field(default_factory=list)
    taken_up: int = 0
    seconds: float = 0.0

    def take(self, below: Below) -> None:
        """Tell also what became of the tables below."""
        self.recomputed, self.owed = below.recomputed, below.owed
        self.blocked, self.follow = below.blocked, below.follow

    @property
    def rows(self) -> int:
        """Late rows that were taken in."""
        return sum(day.rows_merged for day in self.days)

    @property
    def days_changed(self) -> int:
        """Days of derived tables that are others now."""
        return sum(len(table.changed.days) for table in self.recomputed)


def merge_late(
    settings: Settings,
    topology: Topology,
    ingests: Sequence[Ingest],
    engine: Callable[[], SparkSession],
    *,
    run_id: str,
    first: date | None = None,
    last: date | None = None,
    tell: Tell = lambda _: None,
) -> MergeReport:
    """Fold the late rows of the ingests' closed days, from `first` to `last` where given.

    The engine is asked for only when a derived table has to be computed again. Killed at any
    moment, the next call finishes: no late row is taken twice, and no day is forgotten. Raises
    RivermarkError while another fold is under way.
    """
    lake, began = settings.lake(), time.monotonic()
    create_table(lake, FOLDS)
    with try_merge_lock(lake.path(FOLDS)) as held:
        if not held:
            raise RivermarkError("another fold is under way; it takes what is there to be folded")
        report = MergeReport(uuid4().hex)
        # What is over afterwards is asked first: a debt that is made meanwhile stays.
        causes, left = open_causes(lake), unfinished_merges(lake)
        before = pending_days(lake, topology)
        versions = {i.name: _version(lake, i) for i in ingests if lake.exists(i.late)}
        found = mergeable(settings, ingests, first=first, last=last)
        if not (found or left or payable(lake, topology, before)):
            report.owed = before
            return report
        report.taken_up = len({b.fold for b in left})
        ids = {name: identity(lake, _ingest(topology, name)) for name in found}
        begun = [
            Begun(fold=report.fold, stream=n, late_version=versions[n], hours=_hours(days))
            for n, days in found.items()
        ]
        begin(lake, begun, ids, run_id)
        changed: dict[str, Changed] = {}
        for each in begun:
            table = _ingest(topology, each.stream).admitted.name
            changed[table] = changed.get(table, Changed()) | of_hours(each.hours)
        done = [
            _take_in(
                settings, _ingest(topology, b.stream), b, found[b.stream], report, tell, run_id
            )
            for b in begun
        ]
        below = compute_below(
            settings,
            topology,
            engine,
            changed,
            before,
            because=report.fold,
            run_id=run_id,
            refreshed=False,
            tell=tell,
        )
        report.take(below)
        over = causes | {b.fold for b in left}
        finish(lake, report.fold, over, done, below.owed, ids, run_id)
    report.seconds = time.monotonic() - began
    return report


def anything_to_merge(settings: Settings, topology: Topology, ingests: Sequence[Ingest]) -> bool:
    """Whether a fold now would do something. Starts no engine."""
    lake = settings.lake()
    return bool(
        mergeable(settings, ingests)
        or unfinished_merges(lake)
        or payable(lake, topology, debts(lake))
    )


def _take_in(
    settings: Settings,
    ingest: Ingest,
    begun: Begun,
    days: Iterable[LateDay],
    report: MergeReport,
    tell: Tell,
    run_id: str,
) -> Done:
    """The late rows of an ingest's days into its admitted table, day by day."""
    lake = settings.lake()
    before = _version(lake, ingest, late=False)
    mine = []
    for day in days:
        told = {
            "stream": ingest.name,
            "fold": begun.fold,
            "day": day.day.isoformat(),
            "late_version": begun.late_version,
            "run": run_id,
        }
        mine.append(merge_day(lake, ingest, day, begun.late_version, told))
        tell(f"{ingest.name} {day.day}: {mine[-1].rows_merged:,} late rows folded")
    report.days += mine
    amounts = [day.money_merged for day in mine if day.money_merged is not None]
    return Done(
        stream=ingest.name,
        rows=sum(day.rows_merged for day in mine),
        money=sum(amounts, Decimal(0)) if amounts else None,
        version_before=before,
        version_after=_version(lake, ingest, late=False),
        settled_through=newest_merged(settings, ingest, after=settled_through(lake, ingest)),
    )


def _ingest(topology: Topology, name: str) -> Ingest:
    found = topology.named(name)
    assert isinstance(found, Ingest)  # noqa: S101 - only ingests are folded
    return found


def _hours(days: Iterable[LateDay]) -> tuple[datetime, ...]:
    return tuple(hour.hour for day in days for hour in day.hours)


def _version(lake: Lake, ingest: Ingest, *, late: bool = True) -> int:
    return int(DeltaTable(lake.path(ingest.late if late else ingest.admitted)).version())
