"""Taking a table out of the lake without destroying it."""

from __future__ import annotations

from pyarrow import fs

from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.model.table import Table


def put_aside(lake: Lake, table: Table, stamp: str) -> str | None:
    """Move a table with its history to `<root>/removed/<stamp>/`; tells where, None without table.

    One rename on a disk; on an object store a copy and a removal, which may be repeated after a
    kill. Nobody may write the table meanwhile.
    """
    if not lake.exists(table):
        return None
    target = f"{lake.root}/removed/{stamp}/{table.name}"
    store, source_path = filesystem(lake.path(table))
    _, target_path = filesystem(target)
    store.create_dir(target_path.rsplit("/", 1)[0], recursive=True)
    if isinstance(store, fs.LocalFileSystem):
        store.move(source_path, target_path)
    else:
        fs.copy_files(
            source_path, target_path, source_filesystem=store, destination_filesystem=store
        )
        store.delete_dir(source_path)
    return target
