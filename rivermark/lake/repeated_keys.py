"""Keys of which a table has several rows: of all of it, or of what was added since none had."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.log_entry import read_entry
from rivermark.lake.quoting import quoted
from rivermark.lake.sql import query, spilling_connection

if TYPE_CHECKING:
    from pyarrow import dataset

    from rivermark.lake.table_rows import TableRows
    from rivermark.model.table import Table

MOST_BYTES: Final = 256 * 1024 * 1024
"""Bytes of files up to which a new key is looked for wherever the bounds of files allow it."""


def repeated_keys(rows: dataset.Dataset, keys: Sequence[str]) -> list[dict[str, Any]]:
    """Each key with more than one row and its `copies`, those with the most first."""
    with spilling_connection({"keyed": rows}) as duck:
        counted = duck.execute(f"SELECT {_counted(keys)}")
        names = [column[0] for column in counted.description or ()]
        return [dict(zip(names, row, strict=True)) for row in counted.fetchall()]


def newly_repeated_keys(
    rows: TableRows, keys: Sequence[str], added: Iterable[str], near: str | None = None
) -> list[dict[str, Any]]:
    """As `repeated_keys`, of the keys that rows of the files `added` have.

    They are looked for in the files that by their bounds may hold one; where those are more than
    MOST_BYTES, only in those that hold rows of the same span of the column `near`.
    """
    fresh = rows.of_files(added)
    ends = _ends(fresh, keys)
    if ends is None:
        return []
    bounds = pc.scalar(True)
    for condition in (_within(name, *pair) for name, pair in ends.items()):
        bounds &= condition
    if near is not None and near not in ends and rows.size(bounds) > MOST_BYTES:
        ends |= _ends(fresh, [near]) or {}
    where = [f"{quoted(name)} BETWEEN ? AND ?" for name in ends] or ["true"]
    same = " AND ".join(f"k.{quoted(n)} IS NOT DISTINCT FROM f.{quoted(n)}" for n in keys)
    names = ", ".join(quoted(key) for key in keys)
    # The names are declared in code, and quoted all the same.
    return query(
        f"WITH looked_for AS (SELECT DISTINCT {names} FROM fresh), "  # noqa: S608
        f"nearby AS (SELECT {names} FROM everything WHERE {' AND '.join(where)}), "
        f"keyed AS (SELECT k.* FROM nearby k SEMI JOIN looked_for f ON {same}) "
        f"SELECT {_counted(keys)}",
        {"fresh": fresh, "everything": rows},
        [value for pair in ends.values() for value in pair],
    )


def repeated_since(
    rows: TableRows, path: str, table: Table, unique_at: int | None
) -> list[dict[str, Any]]:
    """The repeated keys of a table of which an earlier version, where one is given, had none.

    Only what came since is looked at, unless the log no longer says what that was.
    """
    if unique_at is not None and unique_at <= rows.version:
        added = files_with_new_rows(path, unique_at, rows.version)
        if added is not None:
            near = table.days.column if table.days is not None else None
            return newly_repeated_keys(rows, table.keys, added, near) if added else []
    return repeated_keys(rows, table.keys)


def _counted(keys: Sequence[str]) -> str:
    names = ", ".join(quoted(key) for key in keys)
    return (
        f"{names}, count(*) AS copies FROM keyed GROUP BY ALL HAVING count(*) > 1"
        " ORDER BY copies DESC"
    )


def _ends(rows: dataset.Dataset, names: Iterable[str]) -> dict[str, tuple[Any, Any]] | None:
    """The smallest and largest value of each column that has no null; None without rows."""
    chosen = [name for name in names if not pa.types.is_nested(rows.schema.field(name).type)]
    each = ", ".join(
        f"min({quoted(name)}), max({quoted(name)}), count({quoted(name)})" for name in chosen
    )
    (counted,) = query(f"SELECT count(*) AS n, {each} FROM fresh", {"fresh": rows})  # noqa: S608
    total, *values = counted.values()
    if not total:
        return None
    triples = zip(chosen, values[::3], values[1::3], values[2::3], strict=True)
    return {name: (low, high) for name, low, high, count in triples if count == total}


def _within(name: str, low: Any, high: Any) -> pc.Expression:
    column = pc.field(name)
    return (column >= low) & (column <= high)


def files_with_new_rows(table_path: str, after: int, through: int) -> set[str] | None:
    """The files of version `through` in which rows lie that version `after` did not have.

    None where an entry of the log between them is gone. Rows that were only copied count where the
    copy holds new ones too.
    """
    store, folder = filesystem(f"{table_path}/_delta_log")
    files: set[str] = set()
    for version in range(after + 1, through + 1):
        try:
            actions = read_entry(store, folder, version)
        except FileNotFoundError:
            return None
        removed = {unquote(a["remove"]["path"]) for a in actions if "remove" in a}
        added = [a["add"] for a in actions if "add" in a]
        copies_new = bool(removed & files)
        files -= removed
        files |= {unquote(add["path"]) for add in added if add["dataChange"] or copies_new}
    return files
