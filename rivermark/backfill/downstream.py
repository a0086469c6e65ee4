"""Streams downstream of changed rows: planned along the lineage, recomputed where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Literal

from rivermark.backfill.affected_days import Changed, DaysByStream, affected_days
from rivermark.backfill.context import BackfillContext
from rivermark.lake.lake import Lake
from rivermark.model.stream import Stream, inputs_of, table_of
from rivermark.model.topology import Topology
from rivermark.quality.errors import PublicationBlocked
from rivermark.runtime.checkpoint.closed_days import last_closed
from rivermark.runtime.checkpoint.generation import read_generation
from rivermark.runtime.checkpoint.watermarks import last_reached

if TYPE_CHECKING:
    from rivermark.backfill.replace_changed import RecomputedTable


@dataclass(frozen=True)
class StartedStream:
    """A stream that has started, and the last day that it will not write any more, if any."""

    stream: Stream
    closed_through: date | None

    def closed(self, days: Iterable[date]) -> frozenset[date]:
        """Those of the days that can be recomputed."""
        last = self.closed_through
        return frozenset(day for day in days if last is not None and day <= last)


@dataclass(frozen=True)
class Step:
    """What has to happen to one stream: `days` to compute now, `open_days` once they are closed.

    A stream that is not kept by days keeps what it made of the rows before; a refreshed one may be
    left to its next run, which notices the new rows.
    """

    stream: Stream
    action: Literal["recompute", "refreshes itself", "keeps its rows"]
    days: frozenset[date] = frozenset()
    open_days: frozenset[date] = frozenset()


@dataclass
class DownstreamResult:
    """What became of the streams downstream.

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
        """How many days of tables have other rows now."""
        return sum(len(table.changed.days) for table in self.recomputed)


def plan(
    streams: Sequence[StartedStream],
    changed: Mapping[str, Changed],
    pending: DaysByStream,
    *,
    refresh: bool,
) -> list[Step]:
    """The steps for streams that read tables in `changed` or have `pending` days, in their order.

    Changes that a step makes itself are not followed: after it, plan again. Refreshed streams are
    recomputed with `refresh`, and left to themselves without.
    """
    steps = []
    for each in streams:
        stream = each.stream
        if stream.days is None:
            if any(table.name in changed for table in inputs_of(stream)):
                steps.append(Step(stream, "keeps its rows"))
        elif stream.kind == "refresh" and not refresh and _first_input(stream) in changed:
            steps.append(Step(stream, "refreshes itself"))
        elif days := affected_days(stream, changed) | pending.get(stream.name, set()):
            closed = each.closed(days)
            steps.append(Step(stream, "recompute", closed, frozenset(days - closed)))
    return steps


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


def started_streams(lake: Lake, topology: Topology) -> list[StartedStream]:
    """The derived streams that have started: one that has not will read its inputs as they are."""
    return [
        StartedStream(stream, closed_through(lake, stream))
        for stream in topology.streams
        if isinstance(stream, Stream)
        and all(lake.exists(table) for table in stream.tables)
        and read_generation(lake, stream) is not None
    ]


def closed_through(lake: Lake, stream: Stream) -> date | None:
    """The last day that the live stream will not write any more; every day of a refreshed one."""
    if stream.kind == "refresh":
        return date.max
    watermark = last_reached(lake, stream) if stream.days is not None else None
    return None if watermark is None else last_closed(stream, watermark)


def any_closed(lake: Lake, topology: Topology, pending: DaysByStream) -> bool:
    """Whether a pending day can be recomputed by now."""
    return bool(pending) and any(
        each.closed(pending.get(each.stream.name, ())) for each in started_streams(lake, topology)
    )


def _first_input(stream: Stream) -> str:
    return table_of(stream.reads[0]).name
