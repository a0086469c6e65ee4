"""The days that a stream has finished, as it reported them when they were."""

from __future__ import annotations

from datetime import date

from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.sql import query
from rivermark.model.stream import Stream
from rivermark.model.table import Table, days_between
from rivermark.quality.duckdb_sql import local_day
from rivermark.runtime.checkpoint.closed_days import ClosedDays, first_day
from rivermark.settings import Settings


def finished_days(settings: Settings, stream: Stream, table: Table) -> list[date]:
    """The days of a table that its stream has reported, oldest first.

    Those of a refreshing stream are the days with rows: it reports what it computes, and keeps no
    list.
    """
    lake = settings.lake()
    if table.days is None or stream.days is None:
        return []
    if stream.kind == "refresh":
        days = _days_with_rows(lake, table)
    else:
        through = ClosedDays(lake, settings.state).through(stream.name)
        first = first_day(lake, stream) if lake.exists(stream.tables[0]) else None
        days = days_between(first, through) if first and through else []
    return [day for day in days if day >= table.days.start]


def _days_with_rows(lake: Lake, table: Table) -> list[date]:
    if not lake.exists(table):
        return []
    sql = f"SELECT DISTINCT {local_day(table)} AS day FROM rows ORDER BY day"  # noqa: S608
    rows = query(sql, {"rows": dataset_of(delta_table(lake.path(table)))})
    return [row["day"] for row in rows if row["day"] is not None]
