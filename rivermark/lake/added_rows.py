"""The rows that commits of a table brought, read from their files: no state, no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import pyarrow as pa

from rivermark.lake.delta import read_file
from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.log_entry import Actions, read_entry

ROWS: Final = frozenset({"commitInfo", "add"})
"""What an entry consists of that brings rows and does nothing else."""


def added_rows(table_path: str, commits: range, schema: pa.Schema) -> pa.Table | None:
    """The rows of those versions' commits, in their order, by these columns.

    None where anything else than rows came: another schema, files that were taken out, partitions.
    And where an entry or a file is gone. Raises TableDamaged for an entry that is empty or cut.
    """
    store, folder = filesystem(f"{table_path}/_delta_log")
    table = Path(folder).parent
    parts = [schema.empty_table()]
    try:
        for version in commits:
            for name in _files(read_entry(store, folder, version)):
                rows = read_file(store, f"{table}/{name}", schema.names)
                parts.append(rows.select(schema.names).cast(schema))
    except (KeyError, ValueError, OSError, pa.ArrowException):
        # Spark finds it again, and says what it is.
        return None
    return pa.concat_tables(parts)


def _files(actions: Actions) -> Iterator[str]:
    """The files of an entry; raises ValueError for one that does not add rows alone."""
    for action in actions:
        add = action.get("add")
        if not action.keys() <= ROWS or (add is not None and _asks_more(add)):
            raise ValueError("not rows alone")
        if add is not None:
            yield unquote(add["path"])


def _asks_more(add: dict[str, object]) -> bool:
    return bool(add.get("partitionValues") or add.get("deletionVector") or not add["dataChange"])
