"""Deleting what neither the retention nor a reader needs: old files, and old entries of the log."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import write_deltalake
from pyarrow import fs

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import abandoned_drafts, filesystem, is_local
from rivermark.lake.integrity.sidecar import sidecar_of
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import REMEMBERED, Commit, CommitLog
from rivermark.lake.maintenance.reader_positions import Reader, lagging
from rivermark.lake.retention import oldest_retained
from rivermark.model.table import Table

ENTRY: Final = re.compile(
    r"(\d{20})\.(json|crc|checkpoint(\..+)?\.parquet|checkpoint\..+\.json)|\.(\d{20})\..+\.crc"
)
"""Files of a version, those in which Hadoop keeps its checksums too."""


def vacuum(
    lake: Lake,
    table: Table,
    readers: Sequence[Reader],
    now: datetime,
    *,
    dry_run: bool = False,
) -> tuple[int, str]:
    """Delete files that no retained version and no reader needs; returns how many, and why no more.

    A file goes when it was taken out of the table before the retained span began. The files of the
    oldest retained version are held by name, whatever the clocks said. Files that no commit
    named (left by a killed writer) go too, once they are as old as that.
    """
    path = lake.path(table)
    oldest = oldest_retained(lake, table, now)
    reader = lagging(CommitLog(path), readers, oldest)
    if reader is not None:
        return 0, _held(reader, oldest)
    keep = sorted({oldest, *(r.version for r in readers if r.snapshot)})
    with commit_lock(path):
        deleted = delta_table(path).vacuum(dry_run=dry_run, full=True, keep_versions=keep)
        if is_local(path) and not dry_run:
            for name in deleted:
                sidecar_of(Path(filesystem(path)[1], unquote(name))).unlink(missing_ok=True)
    return len(deleted), ""


def clean_log(
    lake: Lake,
    table: Table,
    readers: Sequence[Reader],
    now: datetime,
    run_id: str,
    *,
    dry_run: bool = False,
) -> int:
    """Delete log entries that neither the retained span nor a reader needs; returns how many.

    The log begins with a table checkpoint afterwards, so that all later versions can be read, and
    the newest batch of each stream is written down in it (`remember`). Not by delta-rs's own
    `cleanup_metadata`: that keeps what was committed in the span, and not the version which was
    current when the span began (seen with 1.6.6: a quiet table lost it).
    """
    needed = min([oldest_retained(lake, table, now), *(r.log_from for r in readers)])
    return cut_log(lake.path(table), needed, run_id, dry_run=dry_run)


def cut_log(path: str, needed: int, run_id: str, *, dry_run: bool = False) -> int:
    """Delete the log entries of a table that lie before its last checkpoint up to a version."""
    store, folder = filesystem(f"{path}/_delta_log")
    entries = _entries(store, folder)
    checkpoints = (v for v, name in entries if ".checkpoint" in name and not name.startswith("."))
    begin = max((v for v in checkpoints if v <= needed), default=0)
    old = [name for v, name in entries if v < begin]
    if not old or dry_run:
        return len(old)
    with commit_lock(path):
        write_batch_markers(path, run_id)
        for name in sorted(old):
            # The oldest first: a kill in the middle leaves a log without a gap.
            store.delete_file(f"{folder}/{name}")
    return len(old)


def remove_drafts(lake: Lake, table: Table, now: datetime, *, dry_run: bool = False) -> int:
    """Delete what killed writers left in the log; returns how many files. No reader opens them."""
    store, folder = filesystem(f"{lake.path(table)}/_delta_log")
    drafts = abandoned_drafts(store, folder, now)
    for path in [] if dry_run else drafts:
        store.delete_file(path)
    return len(drafts)


def _entries(store: fs.FileSystem, folder: str) -> list[tuple[int, str]]:
    files = store.get_file_info(fs.FileSelector(folder))
    names = [f.base_name for f in files if f.type == fs.FileType.File]
    return [(int(m[1] or m[4]), name) for name in names if (m := ENTRY.fullmatch(name))]


def _held(reader: Reader, before: int) -> str:
    if reader.savepoint:
        return (
            f"savepoint {reader.savepoint} of '{reader.stream}' goes on from version "
            f"{reader.version}, and versions before {before} could go; without it: rivermark "
            f"savepoint delete {reader.stream} {reader.savepoint}"
        )
    return (
        f"stream '{reader.stream}' has read only to version {reader.behind}, and versions before "
        f"{before} could go: start it, or reset it (rivermark reset {reader.stream})"
    )


def newest_batches(log: CommitLog) -> list[Commit]:
    """The newest batch of each stream in its newest generation, newest first.

    A refreshing stream's batches are those by which it replaced days.
    """
    newest: dict[str, Commit] = {}
    for commit in log.history():
        stream = commit.metadata.get("stream")
        if stream is None or not {"batch", "refresh"} & commit.metadata.keys():
            continue
        before = newest.get(stream)
        if before is None or _generation(commit) > _generation(before):
            newest[stream] = commit
    return sorted(newest.values(), key=lambda c: c.version, reverse=True)


def write_batch_markers(table_path: str, run_id: str) -> None:
    """Write the newest batches down in a commit that adds no row. Holds no lock of its own."""
    log = CommitLog(table_path)
    metadata = {
        "upkeep": "remember",
        "run": run_id,
        REMEMBERED: {"all": log.knows_all(), "batches": [_marker(c) for c in newest_batches(log)]},
    }
    table = delta_table(table_path)
    nothing = pa.schema(table.schema().to_arrow()).empty_table()
    write_deltalake(table, nothing, mode="append", commit_properties=commit_properties(metadata))
    write_checksum(table_path, table.version())


def _generation(commit: Commit) -> int:
    return int(commit.metadata.get("generation", 0))


def _marker(commit: Commit) -> dict[str, Any]:
    return {
        "version": commit.version,
        "at": commit.at.isoformat(),
        "rows": commit.rows,
        "metadata": commit.metadata,
    }
