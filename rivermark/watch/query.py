"""Questions in SQL over Delta tables, answered in this process. Values are bound, never pasted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    # Arrow's datasets import pandas, which takes a second; whoever asks has paid for it by then.
    from pyarrow import dataset


def ask(
    sql: str,
    tables: Mapping[str, dataset.Dataset],
    values: Sequence[object] | Mapping[str, object] = (),
) -> list[dict[str, Any]]:
    """The rows of the answer. One thread: the streams on this machine have the better claim."""
    with duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "1GB"}) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            engine.register(name, table)
        found = engine.execute(sql, values or None)
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def quoted(column: str) -> str:
    """A column's name as SQL takes any name."""
    return '"' + column.replace('"', '""') + '"'
