"""Tables beside the published ones: what a rehearsal or a what-if computed, to be looked at."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import write_deltalake
from pyarrow import fs

from rivermark.lake.commit_metadata import noted
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.model.table import Table

SIDE: Final = "rehearsals"


def side_path(lake: Lake, name: str, table: Table) -> str:
    """Where a rehearsal keeps its rows of a table: a Delta table of the days alone."""
    return f"{lake.root}/{SIDE}/{name}/{table.name}"


def write_side_table(
    lake: Lake, name: str, table: Table, rows: pa.Table, metadata: dict[str, Any]
) -> str:
    """Keep the rows as a table of their own; tells where."""
    path = side_path(lake, name, table)
    write_deltalake(
        path,
        rows,
        mode="overwrite",
        description=table.description,
        commit_properties=noted(metadata),
    )
    return path


def forget_side_tables(lake: Lake, before: datetime) -> list[str]:
    """Remove side tables, and what a killed run left staged, that are older than that moment."""
    from rivermark.backfill.staging import STAGED

    removed = []
    for folder in (SIDE, STAGED):
        store, path = filesystem(f"{lake.root}/{folder}")
        for info in store.get_file_info(fs.FileSelector(path, allow_not_found=True)):
            if info.type == fs.FileType.Directory and info.mtime and info.mtime < before:
                store.delete_dir(info.path)
                removed.append(info.base_name)
    return removed
