"""Rows of a batch by a column, for targets that keep the order in which they get them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from rivermark.lake.sql import quoted, spilling_connection
from rivermark.model.rows import PIECE, BatchRows


def in_order(rows: BatchRows, columns: Sequence[str], by: str) -> Iterator[pa.Table]:
    """These columns of the rows in pieces, ascending; those of many are sorted on disk."""
    readable = rows.readable()
    if isinstance(readable, pa.Table):
        yield readable.select(list(columns)).sort_by(by)
        return
    names = ", ".join(map(quoted, columns))
    sql = f"SELECT {names} FROM rows ORDER BY {quoted(by)} NULLS LAST"  # noqa: S608
    with spilling_connection({"rows": readable}) as duckdb:
        for batch in duckdb.sql(sql).to_arrow_reader(PIECE):
            yield pa.Table.from_batches([batch])
