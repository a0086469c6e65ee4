"""Days of derived tables: final when every source has passed them, as complete as their sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from rivermark.backfill.late.hours import bounds, day_of, rows_by_hour
from rivermark.backfill.pending import pending_days
from rivermark.model.stream import Stream
from rivermark.model.topology import Topology
from rivermark.monitor.completeness.ingest_day import Day, State
from rivermark.monitor.completeness.join_coverage import Joined, is_join, joined
from rivermark.monitor.watermarks import StreamWatermark, awaited_watermarks, sources_of
from rivermark.settings import Settings

WORST_FIRST: Final[tuple[State, ...]] = ("fail", "open", "warn", "complete")
JOINED_DAYS: Final = 14


@dataclass(frozen=True, kw_only=True)
class DerivedDay:
    """A day of a derived stream: rows of its first table, and the days of its sources.

    Its state is the worst of its sources', and `open` while the watermark of a source, or its own,
    less the stream's margin, has not passed the day: results are still to be written (until then it
    is not `finished`). It warns while it is `pending`: rows that it is made of were changed, and it
    has not been recomputed since. `joined` is set for streams that join by keys.
    """

    stream: str
    day: date
    state: State
    rows: int
    finished: bool = True
    pending: bool = False
    sources: tuple[Day, ...] = ()
    watermarks: tuple[StreamWatermark, ...] = ()
    joined: Joined | None = None

    @property
    def sentence(self) -> str:
        """The figures in words."""
        parts = [f"{self.rows:,} rows"]
        if self.joined is not None:
            parts.append(f"{self.joined.matched:,} matched")
            parts += [f"{n:,} in {name}" for name, n in self.joined.unmatched.items()]
            still = "waiting" if self.state == "open" else "without a row by the stream's own rule"
            parts += [f"{n:,} keys of {name} {still}" for name, n in self.joined.pending.items()]
        troubled = [d for d in self.sources if d.state in ("warn", "fail")]
        parts += [f"{d.stream}: {d.sentence}" for d in troubled]
        if self.pending:
            parts.append("rows that it is made of were changed: it has to be recomputed")
        if self.state == "open":
            behind = ", ".join(
                f"{w.stream} at {w.at:%Y-%m-%d %H:%M}" if w.at else f"{w.stream} without a row"
                for w in self.watermarks
            )
            parts.append(f"still open: {behind or 'not computed yet'}")
        return "; ".join(parts)


def days_of_stream(
    settings: Settings,
    topology: Topology,
    stream: Stream,
    days: Sequence[date],
    reached: Mapping[str, datetime],
    of_sources: Mapping[str, Sequence[Day]],
) -> list[DerivedDay]:
    """Those of the days that the stream's first table can hold, in order.

    `of_sources` are the days of every ingest, by name; those of the same date count, also where the
    zones of the days differ. Partners of a join are counted for the newest days only, since each
    day needs several queries.
    """
    table = stream.tables[0]
    if table.days is None or not days:
        return []
    start, end = bounds(min(days), max(days), table.days)
    rows: Counter[date] = Counter()
    for hour, count in rows_by_hour(settings, table, start, end).items():
        rows[day_of(hour, table.days)] += count
    pending = pending_days(settings.lake(), topology).get(stream.name, set())
    watermarks = awaited_watermarks(topology, stream, reached)
    if watermarks and stream.kind == "append":
        # Its sources may have passed the day while it is paused. A refreshed table is as of its
        # last computation, and nothing waits for dumps.
        watermarks = (*watermarks, StreamWatermark(stream.name, reached.get(stream.name)))
    sources = [ingest.name for ingest in sources_of(topology, stream)]
    newest = sorted(days)[-JOINED_DAYS:] if is_join(stream) else []
    partners = joined(settings, stream, newest[0], newest[-1]) if newest else {}
    derived = []
    for day in sorted(days):
        if day < table.days.start:
            continue
        _, day_end = bounds(day, day, table.days)
        upstream = tuple(d for s in sources for d in of_sources.get(s, ()) if d.day == day)
        passed = all(w.at is not None and w.at >= day_end + stream.margin for w in watermarks)
        states = {d.state for d in upstream if not (d.state == "open" and passed)}
        states.add("complete" if passed else "open")
        if passed and day in pending:
            states.add("warn")
        derived.append(
            DerivedDay(
                stream=stream.name,
                day=day,
                state=next(s for s in WORST_FIRST if s in states),
                rows=rows[day],
                finished=passed,
                pending=day in pending,
                sources=upstream,
                watermarks=watermarks,
                joined=partners.get(day),
            )
        )
    return derived
