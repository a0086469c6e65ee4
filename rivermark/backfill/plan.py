"""The plan for streams downstream of changed rows: which of their days to recompute, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from rivermark.backfill.affected_days import Changed, DaysByStream, affected_days
from rivermark.lake.lake import Lake
from rivermark.model.stream import Stream, inputs_of, table_of
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.closed_days import last_closed
from rivermark.runtime.checkpoint.generation import read_generation
from rivermark.runtime.checkpoint.watermarks import last_reached


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
    """The work on one stream: `days` to compute now, `open_days` once they are closed.

    A stream that is not kept by days keeps what it made of the rows before; a refreshed one may be
    left to its next run, which notices the new rows.
    """

    stream: Stream
    action: Literal["recompute", "refreshes itself", "keeps its rows"]
    days: frozenset[date] = frozenset()
    open_days: frozenset[date] = frozenset()


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
    """Returns True if a pending day can be recomputed by now."""
    return bool(pending) and any(
        each.closed(pending.get(each.stream.name, ())) for each in started_streams(lake, topology)
    )


def _first_input(stream: Stream) -> str:
    return table_of(stream.reads[0]).name
