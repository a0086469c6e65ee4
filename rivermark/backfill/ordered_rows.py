"""Rows of some days in an order of their own, as DuckDB selects them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from rivermark.backfill.duckdb_spill import arrow_engine
from rivermark.lake.day_predicates import days_of
from rivermark.lake.sql import quoted
from rivermark.model.table import Table
from rivermark.quality.duckdb_sql import on_days

if TYPE_CHECKING:
    from pyarrow import dataset


def ordered_rows(rows: dataset.Dataset, table: Table, days: Collection[date]) -> pa.Table:
    """The declared columns of the rows in the days, in an order that only their values decide.

    So the same rows make the same file, however Spark's tasks happened to deliver them.
    """
    names = [f.name for f in table.schema.fields]
    lead = dict.fromkeys([days_of(table).column, *table.keys, *names])
    order = ", ".join(f"{quoted(name)} NULLS FIRST" for name in lead)
    columns = ", ".join(quoted(name) for name in names)
    sql = f"SELECT {columns} FROM found WHERE {on_days(table, days)} ORDER BY {order}"  # noqa: S608
    with arrow_engine({"found": rows}) as engine:
        found: pa.Table = engine.sql(sql).to_arrow_table()
    return found
