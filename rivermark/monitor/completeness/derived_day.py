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
from rivermark.monitor.watermarks import Mark, inputs_with_marks, sources_of
from rivermark.settings import Settings

WORST_FIRST: Final[tuple[State, ...]] = ("fail", "open", "warn", "complete")
JOINS_LOOKED_AT: Final = 14


@dataclass(frozen=True, kw_only=True)
class DerivedDay:
    """A day of a derived stream: rows of its first table, and the days of its sources.

    The worst of the sources' states is its own, and `open` while the watermark of a source, or its
    own, less the stream's margin, has not passed the day: results are still to be written (until
    then it is not `over`). It warns
    while it is `owed`: rows that it is made of were changed, and it was not computed again since.
    `joined` is told of streams that join by keys.
    """

    stream: str
    day: date
    state: State
    rows: int
    over: bool = True
    owed: bool = False
    sources: tuple[Day, ...] = ()
    marks: tuple[Mark, ...] = ()
    joined: Joined | None = None

    @property
    def numbers(self) -> dict[str, int | float]:
        """What is worth a plot."""
        found: dict[str, int | float] = {
            "rows": self.rows,
            "rows_late": sum(d.late for d in self.sources),
            "rows_unfolded": sum(d.unfolded for d in self.sources),
            "rows_short": sum(d.short for d in self.sources),
            "rows_unaccounted": sum(d.unaccounted for d in self.sources),
            "hours_missing": sum(len(d.missing_hours) for d in self.sources),
        }
        if self.joined is not None:
            found["rows_matched"] = self.joined.matched
            found["rows_unmatched"] = sum(self.joined.unmatched.values())
            found["keys_pending"] = sum(self.joined.pending.values())
        return found

    @property
    def sentence(self) -> str:
        """What is so, in words."""
        told = [f"{self.rows:,} rows"]
        if self.joined is not None:
            told.append(f"{self.joined.matched:,} matched")
            told += [f"{n:,} in {name}" for name, n in self.joined.unmatched.items()]
            still = "waiting" if self.state == "open" else "without a row by the stream's own rule"
            told += [f"{n:,} keys of {name} {still}" for name, n in self.joined.pending.items()]
        troubled = [d for d in self.sources if d.state in ("warn", "fail")]
        told += [f"{d.stream}: {d.sentence}" for d in troubled]
        if self.owed:
            told.append("rows that it is made of were changed: it is to be computed again")
        if self.state == "open":
            waits = ", ".join(
                f"{m.stream} at {m.at:%Y-%m-%d %H:%M}" if m.at else f"{m.stream} without a row"
                for m in self.marks
            )
            told.append(f"still open: {waits or 'not computed yet'}")
        return "; ".join(told)


def days_of_stream(
    settings: Settings,
    topology: Topology,
    stream: Stream,
    days: Sequence[date],
    reached: Mapping[str, datetime],
    of_sources: Mapping[str, Sequence[Day]],
    *,
    joins: int = JOINS_LOOKED_AT,
) -> list[DerivedDay]:
    """Those of the days that the stream's first table can hold, in order.

    Partners are counted for the newest `joins` of them, since each day asks several questions.

    `of_sources` are the judged days of every ingest, by name; those of the same date count, also
    where the zones of the days differ.
    """
    table = stream.tables[0]
    if table.days is None or not days:
        return []
    start, end = bounds(min(days), max(days), table.days)
    rows: Counter[date] = Counter()
    for hour, count in rows_by_hour(settings, table, start, end).items():
        rows[day_of(hour, table.days)] += count
    owed = pending_days(settings.lake(), topology).get(stream.name, set())
    marked = inputs_with_marks(topology, stream, dict(reached))
    if marked and stream.kind == "append":
        # Its sources may be over while it rests. A refreshed table is as of its last computing, and
        # of dumps nothing is waited for.
        marked = (*marked, Mark(stream.name, reached.get(stream.name)))
    sources = [ingest.name for ingest in sources_of(topology, stream)]
    newest = sorted(days)[-joins:] if is_join(stream) else []
    partners = joined(settings, stream, newest[0], newest[-1]) if newest else {}
    found = []
    for day in sorted(days):
        if day < table.days.start:
            continue
        _, day_end = bounds(day, day, table.days)
        above = tuple(d for s in sources for d in of_sources.get(s, ()) if d.day == day)
        passed = all(m.at is not None and m.at >= day_end + stream.margin for m in marked)
        states = {d.state for d in above if not (d.state == "open" and passed)}
        states.add("complete" if passed else "open")
        if passed and day in owed:
            states.add("warn")
        found.append(
            DerivedDay(
                stream=stream.name,
                day=day,
                state=next(s for s in WORST_FIRST if s in states),
                rows=rows[day],
                over=passed,
                owed=day in owed,
                sources=above,
                marks=marked,
                joined=partners.get(day) if day in newest else None,
            )
        )
    return found
