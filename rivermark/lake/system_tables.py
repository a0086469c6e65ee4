"""Rows of the platform's own tables: made in Python, typed by the table's declaration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import write_deltalake

from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import delta_table
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.schema import create_table
from rivermark.model.table import Table


def rows_of(table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The rows with the columns and types that the table declares; moments are UTC."""
    return pa.Table.from_pylist([*rows], arrow_schema(table.schema))


def append_rows(
    lake: Lake, table: Table, rows: Sequence[Mapping[str, Any]], metadata: Mapping[str, Any]
) -> None:
    """Append the rows in one commit under the table's lock; creates the table where needed.

    Without rows there is no commit.
    """
    create_table(lake, table)
    if not rows:
        return
    path = lake.path(table)
    with commit_lock(path):
        write_deltalake(
            delta_table(path),
            rows_of(table, rows),
            mode="append",
            commit_properties=commit_properties(dict(metadata)),
        )
