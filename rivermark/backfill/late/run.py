"""Merges late rows of closed days into admitted tables, and recomputes what follows from them.

First the admitted tables of all ingests, then each stream downstream, in lineage order, for the
days that may differ. A day that its stream has not closed yet stays pending: the next merge after
it is closed recomputes it. The live streams go on meanwhile and skip these commits.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from uuid import uuid4

from rivermark.backfill.affected_days import Changed
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.downstream import DownstreamResult, recompute_downstream
from rivermark.backfill.late.days import LateDay, mergeable
from rivermark.backfill.late.merge import MergedDay, merge_day
from rivermark.backfill.late.merge_log import (
    MergeResult,
    StartedMerge,
    interrupted_merges,
    merged_through,
    record_finish,
    record_start,
    table_id,
)
from rivermark.backfill.late.merged import newest_merged
from rivermark.backfill.pending import PENDING_AND_MERGES, open_causes, pending_days
from rivermark.backfill.plan import any_closed
from rivermark.lake.delta import delta_table
from rivermark.lake.locks import try_merge_lock
from rivermark.lake.schema import create_table
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Ingest
from rivermark.model.topology import Topology
from rivermark.settings import Settings


@dataclass
class MergeReport:
    """Result of a merge: days of ingests, and what became of the streams downstream.

    `resumed` counts interrupted merges that are finished now.
    """

    merge: str
    days: list[MergedDay] = field(default_factory=list)
    downstream: DownstreamResult = field(default_factory=DownstreamResult)
    resumed: int = 0
    seconds: float = 0.0

    @property
    def rows(self) -> int:
        """Late rows that were merged."""
        return sum(day.rows_merged for day in self.days)


def merge_late(
    context: BackfillContext,
    ingests: Sequence[Ingest],
    *,
    first: date | None = None,
    last: date | None = None,
) -> MergeReport:
    """Merge the late rows of the ingests' closed days, from `first` to `last` where given.

    Spark is asked for only where rows are many, or a derived table has to be recomputed. Killed at
    any moment, the next call finishes: no late row is merged twice, and no day is forgotten. Raises
    RivermarkError while another merge is running.
    """
    lake, started = context.lake, time.monotonic()
    create_table(lake, PENDING_AND_MERGES)
    with try_merge_lock(lake.path(PENDING_AND_MERGES)) as held:
        if not held:
            raise RivermarkError("another merge of late rows is running in this lake")
        report = MergeReport(uuid4().hex)
        # Read first: what becomes pending from here on is not resolved by this merge.
        causes, interrupted = open_causes(lake), interrupted_merges(lake)
        pending = pending_days(lake, context.topology)
        present = [ingest for ingest in ingests if lake.exists(ingest.late)]
        late_versions = {ingest.name: _version(lake.path(ingest.late)) for ingest in present}
        late = mergeable(context.settings, ingests, context.spark, first=first, last=last)
        if not (late or interrupted or any_closed(lake, context.topology, pending)):
            report.downstream.pending = pending
            return report
        report.resumed = len(interrupted)
        chosen = [ingest for ingest in ingests if ingest.name in late]
        merges = [
            StartedMerge(
                merge=report.merge,
                stream=ingest.name,
                table_id=table_id(lake, ingest),
                late_version=late_versions[ingest.name],
                hours=tuple(hour.hour for day in late[ingest.name] for hour in day.hours),
            )
            for ingest in chosen
        ]
        record_start(lake, merges, context.run_id)
        changed = {
            ingest.admitted.name: Changed.in_hours(each.hours)
            for ingest, each in zip(chosen, merges, strict=True)
        }
        results = [
            _merge_ingest(context, ingest, each, late[ingest.name], report)
            for ingest, each in zip(chosen, merges, strict=True)
        ]
        report.downstream = recompute_downstream(
            context, changed, pending, because=report.merge, refresh=False
        )
        left = (uuid4().hex, report.downstream.pending)
        record_finish(lake, report.merge, results, causes, left, context.run_id)
    report.seconds = time.monotonic() - started
    return report


def anything_to_merge(settings: Settings, topology: Topology, ingests: Sequence[Ingest]) -> bool:
    """Returns True if a merge now would do something. Starts no Spark."""
    lake = settings.lake()
    return bool(
        mergeable(settings, ingests)
        or interrupted_merges(lake)
        or any_closed(lake, topology, pending_days(lake, topology))
    )


def _merge_ingest(
    context: BackfillContext,
    ingest: Ingest,
    started: StartedMerge,
    days: Iterable[LateDay],
    report: MergeReport,
) -> MergeResult:
    """Merge the late rows of an ingest's days into its admitted table, day by day."""
    lake, path = context.lake, context.lake.path(ingest.admitted)
    before, merged = _version(path), []
    for day in days:
        metadata = {
            "stream": ingest.name,
            "fold": started.merge,
            "day": day.day.isoformat(),
            "late_version": started.late_version,
            "run": context.run_id,
        }
        late_version = started.late_version
        merged.append(merge_day(lake, ingest, day, late_version, metadata, context.spark))
        context.on_step(f"{ingest.name} {day.day}: {merged[-1].rows_merged:,} late rows merged")
    report.days += merged
    amounts = [day.money_merged for day in merged if day.money_merged is not None]
    known = merged_through(lake, ingest)
    return MergeResult(
        stream=ingest.name,
        table_id=started.table_id,
        rows=sum(day.rows_merged for day in merged),
        money=sum(amounts, Decimal(0)) if amounts else None,
        version_before=before,
        version_after=_version(path),
        merged_through=newest_merged(context.settings, ingest, after=known, spark=context.spark),
    )


def _version(path: str) -> int:
    return int(delta_table(path).version())
