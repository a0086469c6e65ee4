"""The newest days of every stream: of the ingests, and of the streams derived from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Final

from rivermark.backfill.late.hours import bounds
from rivermark.lake.snapshot import open_table
from rivermark.model.stream import Ingest, Stream
from rivermark.model.table import days_between
from rivermark.model.time import shifted
from rivermark.model.topology import Topology
from rivermark.monitor.completeness.derived_day import DerivedDay, days_of_stream
from rivermark.monitor.completeness.ingest_day import Day, days_of_ingest, newest_day
from rivermark.monitor.watermarks import sources_of, watermarks_of
from rivermark.settings import Settings

FEWEST_DAYS: Final = 7
MOST_FILES: Final = 1_000


def newest_ingest_days(
    settings: Settings,
    topology: Topology,
    ingest: Ingest,
    reached: Mapping[str, datetime],
    days: int,
) -> list[Day]:
    """The newest days of an ingest, at most so many; none where it has no row.

    Fewer where they lie in very many files, so that a page or check opens MOST_FILES of them.
    """
    newest = newest_day(settings, ingest)
    if newest is None:
        return []
    rows = open_table(settings.lake(), ingest.admitted)
    time = ingest.contract.event_time
    while True:
        first = shifted(newest, -timedelta(days=days - 1))
        start, _ = bounds(first, newest, ingest.days)
        if days <= FEWEST_DAYS or rows.files_since(time, start) <= MOST_FILES:
            break
        days = max(FEWEST_DAYS, days // 2)
    return days_of_ingest(settings, topology, ingest, first, newest, reached)


def all_ingest_days(settings: Settings, topology: Topology, days: int) -> dict[str, list[Day]]:
    """The newest days of every ingest, by name; those without rows are left out."""
    reached = watermarks_of(settings, topology.streams)
    by_ingest = {
        stream.name: newest_ingest_days(settings, topology, stream, reached, days)
        for stream in topology.streams
        if isinstance(stream, Ingest) and stream.kind == "events"
    }
    return {name: of_ingest for name, of_ingest in by_ingest.items() if of_ingest}


def all_derived_days(
    settings: Settings, topology: Topology, of_sources: Mapping[str, Sequence[Day]], days: int
) -> dict[str, list[DerivedDay]]:
    """The newest days of every derived stream that is kept by days: those of its sources."""
    reached = watermarks_of(settings, topology.streams)
    by_stream = {}
    for stream in topology.streams:
        if not isinstance(stream, Stream) or stream.days is None:
            continue
        known = {d.day for s in sources_of(topology, stream) for d in of_sources.get(s.name, ())}
        newest = [day for day in known if day > shifted(max(known), -timedelta(days=days))]
        by_stream[stream.name] = days_of_stream(
            settings, topology, stream, newest, reached, of_sources
        )
    return by_stream


def derived_days(
    settings: Settings, topology: Topology, stream: Stream, first: date, last: date
) -> list[DerivedDay]:
    """The days of one derived stream from `first` to `last`, with those of its sources."""
    sources = sources_of(topology, stream)
    reached = watermarks_of(settings, (*sources, stream))
    of_sources = {
        ingest.name: days_of_ingest(settings, topology, ingest, first, last, reached)
        for ingest in sources
    }
    days = days_between(first, last)
    return days_of_stream(settings, topology, stream, days, reached, of_sources)
