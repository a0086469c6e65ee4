"""Days of a stream that may differ when rows of the tables that it reads changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from rivermark.backfill.difference import Difference
from rivermark.lake.day_predicates import days_of
from rivermark.model.stream import Stream, table_of
from rivermark.model.table import Table, days_between
from rivermark.model.time import MICROSECOND, shifted
from rivermark.model.topology import Topology

DaysByStream = dict[str, set[date]]
"""Days by the name of their stream."""

HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True)
class Changed:
    """Changed rows of a table, by place: days of the table, and hours of its event time (UTC)."""

    days: frozenset[date] = frozenset()
    hours: frozenset[datetime] = frozenset()

    def __or__(self, other: Changed) -> Changed:
        return Changed(self.days | other.days, self.hours | other.hours)

    @classmethod
    def in_hours(cls, hours: Iterable[datetime]) -> Changed:
        """A change of rows whose event time lies in these hours."""
        return cls(hours=frozenset(hours))

    @classmethod
    def whole_days(cls, table: Table, days: Iterable[date]) -> Changed:
        """A change of which only the days of a table are known: any hour of them may differ."""
        known = frozenset(days)
        spans = [days_of(table).bounds(day, day) for day in known]
        hours = (start + n * HOUR for start, end in spans for n in range(-((start - end) // HOUR)))
        return cls(known, frozenset(hours))

    @classmethod
    def where_different(cls, difference: Difference) -> Changed:
        """Days and hours in which rows differ from those that were published."""
        return cls(frozenset(difference.days_that_differ()), difference.hours)


def affected_days(stream: Stream, changed: Mapping[str, Changed]) -> set[date]:
    """The days of the stream whose rows may differ since rows of its inputs, by table, changed.

    A result lies at most the stream's margin from the rows that it was made from. Columns decide
    which moment of an input that is: where the stream keeps its days by a column by which the input
    keeps its own, the input's days count; else the hours of the input's event time do.
    """
    days: set[date] = set()
    for table in map(table_of, (*stream.reads, *stream.static)):
        if table.name in changed:
            days |= _days(stream, table, changed[table.name])
    start = days_of(stream.tables[0]).start
    return {day for day in days if day >= start}


def all_affected_days(topology: Topology, changed: Mapping[str, Changed]) -> DaysByStream:
    """The days of every stream downstream, as if each change went all the way down.

    A table that is not kept by days cannot be recomputed by day: what reads it is left out.
    """
    known = dict(changed)
    affected: DaysByStream = {}
    for stream in topology.downstream(changed):
        days = affected_days(stream, known) if stream.days is not None else set()
        if not days:
            continue
        affected[stream.name] = days
        reads = (table_of(read).name for read in (*stream.reads, *stream.static))
        hours = frozenset().union(*(known[name].hours for name in reads if name in known))
        known |= {table.name: Changed(frozenset(days), hours) for table in stream.tables}
    return affected


def _days(stream: Stream, table: Table, changed: Changed) -> set[date]:
    daily, margin = days_of(stream.tables[0]), stream.margin
    kept_by = table.days.column if table.days is not None else None
    by_day = bool(changed.days) and kept_by == daily.column != table.event_time
    if changed.hours and not by_day:
        spans = [(hour, hour + HOUR) for hour in changed.hours]
    else:
        spans = [table.days.bounds(day, day) for day in changed.days] if table.days else []
    days: set[date] = set()
    for start, end in spans:
        first = daily.day_of(shifted(start.astimezone(UTC), -margin))
        last = daily.day_of(shifted(end.astimezone(UTC) - MICROSECOND, margin))
        days |= set(days_between(first, last))
    return days
