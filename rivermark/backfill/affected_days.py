"""Which days of a stream follow from changed rows of the tables that it reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from rivermark.backfill.difference import Difference
from rivermark.lake.day_predicates import days_of
from rivermark.model.stream import Stream, table_of
from rivermark.model.table import Table, days_between
from rivermark.model.topology import Topology

DaysByStream = dict[str, set[date]]
"""Days to be computed again, by the name of their stream."""

HOUR: Final = timedelta(hours=1)
MICRO: Final = timedelta(microseconds=1)


@dataclass(frozen=True)
class Changed:
    """Where rows of a table changed: days of the table, and hours of its event time (UTC)."""

    days: frozenset[date] = frozenset()
    hours: frozenset[datetime] = frozenset()

    def __or__(self, other: Changed) -> Changed:
        return Changed(self.days | other.days, self.hours | other.hours)


def days_reached(stream: Stream, changed: Mapping[str, Changed]) -> set[date]:
    """The days of the stream whose rows may differ since rows of its inputs, by table, changed.

    A result lies at most the stream's margin from the rows that it was made from. Which moment of
    an input that is told from its columns: where the stream keeps its days by a column by which the
    input keeps its own, the input's days count; else the hours of the input's event time do.
    """
    found: set[date] = set()
    for read in (*stream.reads, *stream.static):
        table = table_of(read)
        if table.name in changed:
            found |= _days(stream, table, changed[table.name])
    daily = days_of(stream.tables[0])
    return {day for day in found if day >= daily.start}


def all_reached(topology: Topology, changed: Mapping[str, Changed]) -> DaysByStream:
    """The days of every stream below that may differ, as if each change went all the way down.

    A table that is not kept by days cannot be computed again by day: what reads it is left out.
    """
    known = dict(changed)
    found: DaysByStream = {}
    for stream in topology.downstream(changed):
        days = days_reached(stream, known) if stream.days is not None else set()
        if not days:
            continue
        found[stream.name] = days
        reads = (table_of(read).name for read in (*stream.reads, *stream.static))
        hours = frozenset().union(*(known[name].hours for name in reads if name in known))
        for table in stream.tables:
            known[table.name] = Changed(frozenset(days), hours)
    return found


def whole_days(table: Table, days: Iterable[date]) -> Changed:
    """A change of which only the days of a table are known: any hour of them may differ."""
    found = frozenset(days)
    bounds = [days_of(table).bounds(day, day) for day in found]
    hours = (start + n * HOUR for start, end in bounds for n in range(-(-(end - start) // HOUR)))
    return Changed(found, frozenset(hours))


def of_difference(difference: Difference) -> Changed:
    """Where rows differ from those that were there."""
    return Changed(frozenset(difference.days_that_differ()), difference.hours)


def of_hours(hours: Iterable[datetime]) -> Changed:
    """A change of rows whose event time lies in these hours."""
    return Changed(hours=frozenset(hours))


def _days(stream: Stream, table: Table, changed: Changed) -> set[date]:
    daily, margin = days_of(stream.tables[0]), stream.margin
    zone = ZoneInfo(daily.zone)
    by_day = table.days is not None and table.days.column == daily.column
    by_day = by_day and daily.column != table.event_time and bool(changed.days)
    if by_day and table.days is not None:
        spans = [table.days.bounds(day, day) for day in changed.days]
    else:
        spans = [(hour, hour + HOUR) for hour in changed.hours]
        if not spans and table.days is not None:
            spans = [table.days.bounds(day, day) for day in changed.days]
    found: set[date] = set()
    for start, end in spans:
        first = (start.astimezone(UTC) - margin).astimezone(zone).date()
        last = (end.astimezone(UTC) - MICRO + margin).astimezone(zone).date()
        found |= set(days_between(first, last))
    return found
