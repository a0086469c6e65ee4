"""Rows of a range of days, as DuckDB selects them; names are declared, values are bound."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING

import pyarrow as pa

from rivermark.lake.days import days_of, is_date
from rivermark.lake.table import Table
from rivermark.reprocessing.arrow_engine import arrow_engine
from rivermark.watch.query import quoted

if TYPE_CHECKING:
    from pyarrow import dataset

Values = Mapping[str, object]


def in_range(table: Table, first: date, last: date) -> tuple[str, Values]:
    """The condition that a row lies in the days, and the values it names."""
    column = quoted(days_of(table).column)
    if is_date(table):
        return f"{column} BETWEEN $first AND $last", {"first": first, "last": last}
    start, end = days_of(table).bounds(first, last)
    return f"({column} >= $first AND {column} < $last)", {"first": start, "last": end}


def day_of(table: Table, row: str) -> str:
    """The day of a row, in the zone of the days; binds `$zone` where that is needed."""
    column = f"{row}.{quoted(days_of(table).column)}"
    return column if is_date(table) else f"timezone($zone, {column})::DATE"


def zone_of(table: Table) -> Values:
    """The value that `day_of` names."""
    return {} if is_date(table) else {"zone": days_of(table).zone}


def ordered_rows(rows: dataset.Dataset, table: Table, first: date, last: date) -> pa.Table:
    """The declared columns of the rows in the days, in an order that only their values decide.

    So the same rows make the same file, however Spark's tasks happened to deliver them.
    """
    where, values = in_range(table, first, last)
    names = [f.name for f in table.schema.fields]
    lead = dict.fromkeys([days_of(table).column, *table.keys, *names])
    order = ", ".join(f"{quoted(name)} NULLS FIRST" for name in lead)
    columns = ", ".join(quoted(name) for name in names)
    sql = f"SELECT {columns} FROM found WHERE {where} ORDER BY {order}"  # noqa: S608
    with arrow_engine({"found": rows}) as engine:
        found: pa.Table = engine.sql(sql, params=dict(values)).to_arrow_table()
    return found
