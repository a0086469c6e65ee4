"""Every reader of a table that maintenance must know: streams, and ingests whose source it is."""

from __future__ import annotations

from rivermark.ingest.plan import plan_table, planned_names
from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.reader_positions import Reader
from rivermark.model.source_abilities import TableSource
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.positions import position, read_by_stream


def readers_of(lake: Lake, topology: Topology, table: Table) -> list[Reader]:
    """Every stream that has begun to read the table, with what it may still need.

    A stream that has not begun needs nothing: it will read the table as it is, in steps of event
    time, where its first commits are no longer as they were. The exception is an ingest's own list
    of arrived files, which is read in the order of commits or not at all.
    """
    if not lake.exists(table):
        return []
    identity = str(delta_table(lake.path(table)).metadata().id)
    readers = []
    for stream in topology.streams:
        if table.name in {read.name for read in read_by_stream(stream)}:
            reader = position(lake, stream, identity)
            if reader is None and isinstance(stream, Ingest):
                reader = Reader(stream.name, 0)
            if reader is not None:
                readers.append(reader)
        if isinstance(stream, Ingest) and isinstance(stream.source, TableSource):
            reader = _as_source(lake, stream, stream.source, table)
            readers += [] if reader is None else [reader]
    return readers


def _as_source(lake: Lake, ingest: Ingest, source: TableSource, table: Table) -> Reader | None:
    """The needs of an ingest whose source reads a table; None where it reads another."""
    if _place(source.table) != _place(lake.path(table)):
        return None
    planned = planned_names(lake, ingest)
    needed = source.needed(planned, _names_read(lake, ingest) if planned else ())
    return None if needed is None else Reader(ingest.name, needed.number, snapshot=needed.snapshot)


def _names_read(lake: Lake, ingest: Ingest) -> set[str]:
    """The planned splits that finished batches have read: those of the versions behind them."""
    path = lake.path(plan_table(ingest))
    place = position(lake, ingest, str(delta_table(path).metadata().id))
    if place is None or place.snapshot or place.version == 0:
        return set()
    newest = CommitLog(path).versions()[-1]
    return set(planned_names(lake, ingest, min(place.behind, newest)))


def _place(uri: str) -> tuple[object, str]:
    store, path = filesystem(uri)
    return store, path.rstrip("/")
