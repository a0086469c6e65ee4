"""The days that a stream has finished, as it reported them when they were, and their rows."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date

from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.sql import query
from rivermark.model.stream import Stream
from rivermark.model.table import Table, days_between
from rivermark.quality.duckdb_sql import local_day, on_days
from rivermark.runtime.checkpoint.closed_days import ClosedDays, first_day
from rivermark.settings import Settings


def finished_days(settings: Settings, stream: Stream, table: Table) -> list[date]:
    """The days of a table that its stream has reported, oldest first.

    Those of a refreshing stream are the days with rows: it reports what it computes, and keeps no
    list.
    """
    lake = settings.lake()
    closed = ClosedDays(lake, settings.state)
    if table.days is None or stream.days is None:
        return []
    if stream.kind == "refresh":
        days = [*rows_by_day(lake, table)]
        first = min(days, default=None)
    else:
        through = closed.through(stream.name)
        first = first_day(lake, stream) if lake.exists(stream.tables[0]) else None
        days = days_between(first, through) if first and through else []
    # Late rows that were merged since may lie before what its runs have seen.
    closed.note_first(stream, first)
    return [day for day in days if day >= table.days.start]


def rows_by_day(lake: Lake, table: Table, days: Collection[date] = ()) -> dict[date, int]:
    """Rows of each day that has any, oldest first: of the days asked for, or of all."""
    if not lake.exists(table):
        return {}
    chosen = f"WHERE {on_days(table, days)}" if days else ""
    rows = query(
        f"SELECT {local_day(table)} AS day, count(*) AS n FROM rows {chosen} GROUP BY 1 ORDER BY 1",  # noqa: S608
        {"rows": dataset_of(delta_table(lake.path(table)))},
    )
    return {row["day"]: row["n"] for row in rows if isinstance(row["day"], date)}
