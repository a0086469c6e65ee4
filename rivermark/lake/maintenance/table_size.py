"""Size of a table on disk: its files, those of its newest version, and its log."""

from __future__ import annotations

from dataclasses import dataclass

from pyarrow import fs

from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import filesystem
from rivermark.lake.statistics import file_sizes


@dataclass(frozen=True)
class Size:
    """Counts and bytes: data files that are there, those of the newest version, files of the log.

    The difference of the first two is what only old versions need, or nothing any more.
    """

    files: int = 0
    bytes: int = 0
    live_files: int = 0
    live_bytes: int = 0
    log_files: int = 0
    log_bytes: int = 0


def size_of(table_path: str) -> Size:
    """Look at a table's folder and its newest version."""
    store, root = filesystem(table_path)
    files = store.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    log = [f for f in files if f.type == fs.FileType.File and "/_delta_log/" in f.path]
    data = [f for f in files if f.type == fs.FileType.File and f.path.endswith(".parquet")]
    data = [f for f in data if "/_delta_log/" not in f.path]
    sizes = file_sizes(delta_table(table_path))
    return Size(
        files=len(data),
        bytes=sum(f.size for f in data),
        live_files=len(sizes),
        live_bytes=sum(sizes),
        log_files=len(log),
        log_bytes=sum(f.size for f in log),
    )
