"""The days of derived tables that are behind what they are made of: to be computed again."""

from __future__ import annotations

from rivermark.backfill.affected_days import Changed, Debts, all_reached, of_hours
from rivermark.backfill.pending import debts, open_folds
from rivermark.lake.lake import Lake
from rivermark.model.stream import Ingest
from rivermark.model.topology import Topology


def owed_days(lake: Lake, topology: Topology) -> Debts:
    """Days, by stream, that follow from a fold or a reprocessing above and were not computed since.

    They were open then, or a fold was broken off.
    """
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
