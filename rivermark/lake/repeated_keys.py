"""Keys of which a table has several rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rivermark.lake.sql import query, quoted

if TYPE_CHECKING:
    from pyarrow import dataset


def repeated_keys(rows: dataset.Dataset, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Each key with more than one row and its `copies`, those with the most first."""
    names = ", ".join(quoted(key) for key in keys)
    return query(
        # The names are declared in code, and quoted all the same.
        f"SELECT {names}, count(*) AS copies FROM keyed"  # noqa: S608
        " GROUP BY ALL HAVING count(*) > 1 ORDER BY copies DESC",
        {"keyed": rows},
    )
