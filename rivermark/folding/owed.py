"""The days of derived tables that are behind a fold: owed, or below one that was broken off."""

from __future__ import annotations

from rivermark.folding.reach import Changed, all_reached, of_hours
from rivermark.folding.records import Debts, debts, open_folds
from rivermark.lake.lake import Lake
from rivermark.stream import Ingest
from rivermark.topology import Topology


def owed_days(lake: Lake, topology: Topology) -> Debts:
    """Days, by stream, that are to be computed again because late rows came in above."""
    found = debts(lake)
    changed: dict[str, Changed] = {}
    names = {stream.name for stream in topology.streams}
    for begun in open_folds(lake):
        ingest = topology.named(begun.stream) if begun.stream in names else None
        if isinstance(ingest, Ingest):
            table = ingest.admitted.name
            changed[table] = changed.get(table, Changed()) | of_hours(begun.hours)
    for stream, days in all_reached(topology, changed).items():
        found[stream] = found.get(stream, set()) | days
    return found
