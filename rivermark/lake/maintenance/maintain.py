"""Maintenance of one table: compaction, vacuum, log, in that order, with sizes before and after."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from pyarrow import fs

from rivermark.lake.checkpoint import make_checkpoint
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock, try_days_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.compaction import TARGET_BYTES, compact
from rivermark.lake.maintenance.reader_positions import Reader
from rivermark.lake.maintenance.vacuum import clean_log, remove_drafts, vacuum
from rivermark.lake.quoting import quoted_text
from rivermark.lake.retention import apply_retention, retention_of
from rivermark.lake.sql import query
from rivermark.lake.statistics import file_sizes
from rivermark.model.table import Table


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


BUSY: Final = "days of it are being computed again: the next maintenance takes it"


@dataclass
class MaintenanceResult:
    """Result of a table's maintenance (or, dry, its plan); `notes` say what it left and why.

    `failed` is why the table could not be looked after; the numbers are unknown then.
    """

    table: str
    dry_run: bool = False
    before: Size = field(default_factory=Size)
    after: Size = field(default_factory=Size)
    joined_files: int = 0
    deleted_files: int = 0
    deleted_log_entries: int = 0
    deleted_rows: int = 0
    seconds: float = 0.0
    notes: list[str] = field(default_factory=list)
    failed: str = ""


@dataclass(frozen=True)
class OldRows:
    """Rows that are deleted: by a time column older than a moment, but the newest of each key."""

    time: str
    moment: datetime
    key: str


def maintain(
    lake: Lake,
    table: Table,
    *,
    now: datetime,
    run_id: str,
    readers: Sequence[Reader] = (),
    computed_with: Table | None = None,
    old_rows: OldRows | None = None,
    dry_run: bool = False,
    target: int = TARGET_BYTES,
) -> MaintenanceResult:
    """Look after a table, unless days of it are being computed at this moment.

    `computed_with` is the table whose lock a recompute takes (the first one that its stream writes;
    default: this one). `old_rows` are deleted first.
    """
    began = time.monotonic()
    path = lake.path(table)
    done = MaintenanceResult(table.name, dry_run)
    owner = lake.path(computed_with or table)
    with try_days_lock(owner) as ours:
        if not ours:
            done.notes.append(BUSY)
            return done
        done.before = size_of(path)
        if not dry_run:
            apply_retention(lake, table, now)
            if old_rows is not None:
                done.deleted_rows = delete_before(path, old_rows, run_id=run_id)
        # A savepoint needs files that were joined only until it is gone: vacuum leaves them.
        streams = [reader for reader in readers if not reader.savepoint]
        done.joined_files, why = compact(path, streams, run_id, dry_run=dry_run, target=target)
        _note(done, why)
        if not dry_run:
            _checkpoint(path, now, retention_of(lake, table) / 7)
        done.deleted_files, why = vacuum(lake, table, readers, now, dry_run=dry_run)
        _note(done, why)
        done.deleted_files += remove_drafts(lake, table, now, dry_run=dry_run)
        done.deleted_log_entries = clean_log(lake, table, readers, now, run_id, dry_run=dry_run)
        done.after = done.before if dry_run else size_of(path)
    done.seconds = round(time.monotonic() - began, 3)
    return done


def delete_before(path: str, rows: OldRows, *, run_id: str) -> int:
    """Delete old rows, but for the newest of each stream; for tables that no stream reads."""
    sql = f"SELECT {rows.key} AS key, max({rows.time}) AS newest FROM rows GROUP BY 1"  # noqa: S608
    with commit_lock(path):
        delta = delta_table(path)
        where = _before(rows.time, rows.moment)
        for row in query(sql, {"rows": dataset_of(delta)}):
            if row["newest"] < rows.moment:
                key, newest = quoted_text(row["key"]), _before(rows.time, row["newest"])
                where += f" AND ({rows.key} <> {key} OR {newest})"
        properties = commit_properties({"upkeep": "delete", "run": run_id})
        metrics = delta.delete(where, commit_properties=properties)
    return int(metrics.get("num_deleted_rows") or 0)


def _before(column: str, moment: datetime) -> str:
    return f"{column} < '{moment.astimezone(UTC):%Y-%m-%dT%H:%M:%S.%fZ}'"


def _checkpoint(path: str, now: datetime, each: timedelta) -> None:
    """A table checkpoint where there was none for so long: the log can be cut off at one only."""
    log = CommitLog(path)
    newest = log.versions()[-1]
    last = max(log.checkpoints(), default=-1)
    at = log.read(last) if last >= 0 else None
    old = at is None or now - at.at > each
    if newest - last >= 50 or (newest > max(last, 0) and old):
        make_checkpoint(path)


def _note(done: MaintenanceResult, why: str) -> None:
    if why and why not in done.notes:
        done.notes.append(why)
