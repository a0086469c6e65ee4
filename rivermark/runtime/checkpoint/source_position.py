"""The place of an ingest in the Delta table that is its source, where the lake holds that table."""

from __future__ import annotations

from rivermark.ingest.plan import plan_table, planned_names
from rivermark.ingest.source.delta_table import DeltaSource, is_snapshot, version_of
from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.reader_positions import Reader
from rivermark.model.stream import Ingest
from rivermark.model.table import Table
from rivermark.runtime.checkpoint.positions import position


def reader_as_source(lake: Lake, ingest: Ingest, table: Table) -> Reader | None:
    """What an ingest still needs of a table that its source reads; None where it reads another.

    Versions that are planned and not read are needed, and those that are not planned yet. None too
    before the first plan: it begins with the table as it is then.
    """
    source = ingest.source
    if not isinstance(source, DeltaSource) or _place(source.table) != _place(lake.path(table)):
        return None
    planned = planned_names(lake, ingest)
    if not planned:
        return None if source.from_version is None else Reader(ingest.name, source.from_version)
    read = _names_read(lake, ingest)
    unread = [name for name in planned if name not in read]
    if not unread:
        return Reader(ingest.name, max(map(version_of, planned)) + 1)
    oldest = min(unread, key=version_of)
    return Reader(ingest.name, version_of(oldest), snapshot=is_snapshot(oldest))


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
