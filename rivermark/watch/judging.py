"""Days of a derived stream judged on demand, with those of the ingests that they come from."""

from __future__ import annotations

from datetime import date

from rivermark.lake.table import days_between
from rivermark.settings import Settings
from rivermark.stream import Stream
from rivermark.topology import Topology
from rivermark.watch.completeness import days_of_ingest
from rivermark.watch.derived import DerivedDay, days_of_stream
from rivermark.watch.marks import marks, sources_of


def judge_days(
    settings: Settings, topology: Topology, stream: Stream, first: date, last: date
) -> list[DerivedDay]:
    """The days of a derived stream and, for that, those of its sources."""
    above = sources_of(topology, stream)
    reached = marks(settings, (*above, stream))
    sources = {
        ingest.name: days_of_ingest(settings, topology, ingest, first, last, reached)
        for ingest in above
    }
    days = days_between(first, last)
    return days_of_stream(settings, topology, stream, days, reached, sources)
