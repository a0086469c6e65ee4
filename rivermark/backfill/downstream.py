"""What lies below changed rows, computed again in the order of the lineage where it differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING

from rivermark.backfill.affected_days import Changed, DaysByStream, days_reached, whole_days
from rivermark.lake.lake import Lake
from rivermark.model.stream import Ingest, Stream, inputs_of, table_of
from rivermark.model.topology import Topology
from rivermark.quality.errors import PublicationBlocked
from rivermark.runtime.checkpoint.closed_days import last_closed
from rivermark.runtime.checkpoint.generation import read_generation
from rivermark.runtime.checkpoint.watermarks import last_reached
from rivermark.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.backfill.replace_changed import RecomputedTable
    from rivermark.backfill.result import Reprocessing

Tell = Callable[[str], None]


@dataclass
class Below:
    """Tables that were computed again, and what is left.

    `owed` days are to be computed once they are closed, or once their rows break no critical rule
    any more (`blocked`, by stream, with what was said). `follow` are refreshed tables, which notice
    the new rows by themselves when they run. `fixed` are streams that are not kept by days and keep
    what they made of the rows before.
    """

    recomputed: list[RecomputedTable] = field(default_factory=list)
    owed: DaysByStream = field(default_factory=dict)
    blocked: dict[str, str] = field(default_factory=dict)
    follow: list[str] = field(default_factory=list)
    fixed: list[str] = field(default_factory=list)


def compute_below(
    settings: Settings,
    topology: Topology,
    engine: Callable[[], SparkSession],
    changed: Mapping[str, Changed],
    owed: DaysByStream,
    *,
    because: str,
    run_id: str,
    refreshed: bool,
    tell: Tell,
    on_done: Callable[[Reprocessing], None] = lambda _: None,
) -> Below:
    """Every stream below, for the days that may differ since tables `changed`, and for `owed` ones.

    `refreshed` tables are computed too, or left to their next run. The engine is asked for only
    where a day has to be computed. Live streams go on meanwhile and skip these commits.
    """
    lake, known, found = settings.lake(), dict(changed), Below()
    for stream in topology.streams:
        if isinstance(stream, Ingest) or not started(lake, stream):
            continue
        if stream.days is None:
            if any(table.name in known for table in inputs_of(stream)):
                found.fixed.append(stream.name)
            continue
        by_itself = stream.kind == "refresh" and not refreshed
        if by_itself and table_of(stream.reads[0]).name in known:
            found.follow.append(stream.name)
            continue
        mine = owed.get(stream.name, set())
        wanted = days_reached(stream, known) | mine
        closed = closed_days(lake, stream, wanted)
        if wanted - closed:
            found.owed[stream.name] = wanted - closed
            tell(f"{stream.name}: {len(wanted - closed)} days are still open, and owed")
        if not closed:
            continue
        # Here, because Spark's modules are slow to import and many folds need none.
        from rivermark.backfill.replace_changed import mend

        try:
            recomputed = mend(
                engine(),
                settings,
                stream,
                closed,
                because=because,
                run_id=run_id,
                on_step=tell,
                on_done=on_done,
            )
        except PublicationBlocked as error:
            found.owed[stream.name] = wanted
            found.blocked[stream.name] = str(error)
            tell(str(error))
            continue
        found.recomputed += recomputed
        for table in recomputed:
            # One that was broken off may have replaced an owed day already: that it does not differ
            # any more says nothing about what lies below.
            sure = table.changed | whole_days(topology.table(table.table), closed & mine)
            if sure.days:
                known[table.table] = known.get(table.table, Changed()) | sure
        different = sum(len(table.changed.days) for table in recomputed)
        tell(f"{stream.name}: {len(closed)} days computed again, {different} differ")
    return found


def closed_days(lake: Lake, stream: Stream, days: set[date]) -> set[date]:
    """Those of the days that the live stream will not write any more."""
    if stream.kind == "refresh":
        return days
    watermark = last_reached(lake, stream)
    if watermark is None:
        return set()
    through = last_closed(stream, watermark)
    return {day for day in days if day <= through}


def started(lake: Lake, stream: Stream) -> bool:
    """Whether the stream has ever begun: one that has not will read its inputs as they are then."""
    there = all(lake.exists(table) for table in stream.tables)
    return there and read_generation(lake, stream) is not None


def payable(lake: Lake, topology: Topology, owed: DaysByStream) -> bool:
    """Whether any owed day is closed by now."""
    streams = (s for s in topology.streams if isinstance(s, Stream) and s.name in owed)
    return any(started(lake, s) and bool(closed_days(lake, s, owed[s.name])) for s in streams)
