"""Tables as datasets: opened at each use, or once for all queries of a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeVar

from rivermark.lake.delta import dataset_of, delta_table, read_all
from rivermark.lake.lake import Lake
from rivermark.lake.statistics import recorded_rows
from rivermark.model.table import Table

if TYPE_CHECKING:
    # Arrow's datasets import pandas, which takes a second: not before the first query.
    import pyarrow as pa
    from deltalake import DeltaTable
    from pyarrow import dataset

    from rivermark.lake.table_rows import TableRows

T = TypeVar("T")

READ_AT_ONCE: Final = 1_000_000
"""Rows up to which a table is read into memory at once. A status of 400,000 recorded batches takes
1.2 s of CPU so, and 1.5 s and more memory by Arrow's datasets."""

_HELD: Final[ContextVar[dict[tuple[object, ...], Any] | None]] = ContextVar("held", default=None)


def open_table(lake: Lake, table: Table) -> TableRows:
    """The rows of a table at its newest version; within a snapshot at that of the snapshot."""
    return once_per_snapshot(("table", lake.path(table)), lambda: dataset_of(opened(lake, table)))


def open_whole(
    lake: Lake, table: Table, columns: tuple[str, ...] = ()
) -> dataset.Dataset | pa.Table:
    """As `open_table`, for queries over all rows of a table without partitions.

    A small one is read at once, with `columns` at least these of its columns: Arrow's datasets
    import pandas, which takes longer than that.
    """
    newest = opened(lake, table)
    if recorded_rows(newest) > READ_AT_ONCE:
        return open_table(lake, table)
    return once_per_snapshot(("rows", lake.path(table), columns), lambda: read_all(newest, columns))


def opened(lake: Lake, table: Table) -> DeltaTable:
    """A table at its newest version; within a snapshot at that of the snapshot."""
    path = lake.path(table)
    return once_per_snapshot(("newest", path), lambda: delta_table(path))


def row_count(lake: Lake, table: Table, version: int | None = None) -> int:
    """Rows of a table at a version, or as opened (`opened`), by its statistics; 0 without one."""
    if not lake.exists(table):
        return 0
    if version is None:
        return recorded_rows(opened(lake, table))
    return recorded_rows(delta_table(lake.path(table), version=version))


def once_per_snapshot(key: tuple[object, ...], compute: Callable[[], T]) -> T:
    """The computed value; within a snapshot it is computed once for each key."""
    held = _HELD.get()
    if held is None:
        return compute()
    if key not in held:
        held[key] = compute()
    value: T = held[key]
    return value


@contextmanager
def snapshot(lake: Lake, *first: Table) -> Iterator[None]:
    """Open each table once while this lasts, since a year of files takes a while to be listed.

    Tables stay as they were when they were first read. Those in `first` are opened before all
    others, so that what they refer to is in the others.
    """
    token = _HELD.set({})
    try:
        for table in first:
            if lake.exists(table):
                open_table(lake, table)
        yield
    finally:
        _HELD.reset(token)
