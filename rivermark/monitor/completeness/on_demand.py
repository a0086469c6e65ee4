"""Days of a derived stream judged on demand, with those of the ingests that they come from."""

from __future__ import annotations

from datetime import date

from rivermark.model.stream import Stream
from rivermark.model.table import days_between
from rivermark.model.topology import Topology
from rivermark.monitor.completeness.derived_day import DerivedDay, days_of_stream
from rivermark.monitor.completeness.ingest_day import days_of_ingest
from rivermark.monitor.watermarks import marks, sources_of
from rivermark.settings import Settings


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
