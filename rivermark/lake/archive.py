"""Taking a table, or a folder of exported files, out of use without destroying it."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime

from pyarrow import fs

from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.model.table import Table


def archive_table(lake: Lake, table: Table, stamp: str) -> str | None:
    """Move a table with its history to `<root>/removed/<stamp>/`, and return where it lies now.

    None where the table does not exist. No writer may be at the table meanwhile.
    """
    if not lake.exists(table):
        return None
    target = f"{lake.root}/removed/{stamp}/{table.name}"
    move_folder(lake.path(table), target)
    return target


def move_folder(source: str, target: str) -> None:
    """Move a folder to a path on the same storage.

    One rename on a disk; on an object store a copy and a removal, which may be repeated after a
    kill.
    """
    store, source_path = filesystem(source)
    _, target_path = filesystem(target)
    store.create_dir(target_path.rsplit("/", 1)[0], recursive=True)
    if isinstance(store, fs.LocalFileSystem):
        store.move(source_path, target_path)
    else:
        fs.copy_files(
            source_path, target_path, source_filesystem=store, destination_filesystem=store
        )
        store.delete_dir(source_path)


def is_folder(uri: str) -> bool:
    """Returns True if the folder exists."""
    store, path = filesystem(uri)
    info: fs.FileInfo = store.get_file_info(path)
    return bool(info.type == fs.FileType.Directory)


def new_id(now: datetime | None = None) -> str:
    """An id that sorts by time, such as `20260702-141500-3f2a`."""
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
