"""Streams downstream of changed rows, recomputed along the lineage where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rivermark.backfill.affected_days import Changed, DaysByStream
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.plan import Step, plan, started_streams
from rivermark.quality.errors import PublicationBlocked

if TYPE_CHECKING:
    from rivermark.backfill.replace_changed import RecomputedTable


@dataclass
class DownstreamResult:
    """The outcome of the streams downstream.

    `pending` days are to be recomputed once they are closed, or once their rows break no critical
    rule any more (`blocked`: the reason by stream). `refreshing` streams follow by themselves when
    they run, `unchanged` ones are not kept by days and keep their rows.
    """

    recomputed: list[RecomputedTable] = field(default_factory=list)
    pending: DaysByStream = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)
    refreshing: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)

    @property
    def days_changed(self) -> int:
        """Number of days of tables that have other rows now."""
        return sum(len(table.changed.days) for table in self.recomputed)


def recompute_downstream(
    context: BackfillContext,
    changed: Mapping[str, Changed],
    pending: DaysByStream,
    *,
    because: str,
    refresh: bool,
) -> DownstreamResult:
    """Recompute, stream after stream, the closed days that follow from changed rows or are pending.

    Only days that differ are replaced, and only these are followed further down. Spark is asked for
    only where a day has to be computed. Live streams go on meanwhile and skip these commits.
    """
    result, known = DownstreamResult(), dict(changed)
    waiting = started_streams(context.lake, context.topology)
    while steps := plan(waiting, known, pending, refresh=refresh):
        step = steps[0]
        waiting = [each for each in waiting if each.stream is not step.stream]
        if step.action == "keeps its rows":
            result.unchanged.append(step.stream.name)
        elif step.action == "refreshes itself":
            result.refreshing.append(step.stream.name)
        else:
            tables = _run(context, step, result, because)
            for table in tables:
                # An interrupted run may have replaced a pending day already: that it does not
                # differ any more says nothing about what lies downstream.
                days = step.days & pending.get(step.stream.name, set())
                sure = table.changed | Changed.whole_days(context.topology.table(table.table), days)
                if sure.days:
                    known[table.table] = known.get(table.table, Changed()) | sure
            result.recomputed += tables
    return result


def _run(
    context: BackfillContext, step: Step, result: DownstreamResult, because: str
) -> list[RecomputedTable]:
    """Recompute the step's days; what cannot be published stays pending with the reason."""
    name = step.stream.name
    if step.open_days:
        result.pending[name] = set(step.open_days)
        context.on_step(f"{name}: {len(step.open_days)} days are still open, and pending")
    if not step.days:
        return []
    # Here, because Spark's modules are slow to import and many merges need none.
    from rivermark.backfill.replace_changed import replace_changed

    try:
        tables = replace_changed(context, step.stream, step.days, because=because)
    except PublicationBlocked as error:
        result.pending[name] = set(step.days | step.open_days)
        result.blocked[name] = str(error)
        context.on_step(str(error))
        return []
    different = sum(len(table.changed.days) for table in tables)
    context.on_step(f"{name}: {len(step.days)} days recomputed, {different} differ")
    return tables
