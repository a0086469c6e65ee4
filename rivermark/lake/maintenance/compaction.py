"""Few large files instead of many small ones, without a JVM and without a change to any row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import is_local
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.reader_positions import Reader, lagging
from rivermark.lake.statistics import file_sizes
from rivermark.lake.unbounded import writer_options

TARGET_BYTES: Final = 64 * 1024 * 1024
"""Files of this size are left alone: what is written again and again stays bounded."""
FEWEST: Final = 8
"""So many small files must have come together before they are written again."""
TRIES: Final = 3
MANY: Final = 64
"""So many are joined without waiting for the nightly maintenance, which each reader would open."""
SMALL_BYTES: Final = 256 * 1024
"""Files of this size are left to that: what a run writes again by the way stays small."""


def compactable(table: DeltaTable, target: int = TARGET_BYTES) -> int:
    """Number of that version's files small enough to be joined; 0 when it would not pay."""
    small = sum(size < target for size in file_sizes(table))
    return small if small >= FEWEST else 0


def readable_by_all(path: str, readers: Sequence[Reader]) -> tuple[int | None, str]:
    """The newest version that all readers have behind them, or None and the reason.

    Only files of that version are joined, so none that a reader has still to open by its commit.
    """
    log = CommitLog(path)
    newest = log.versions()[-1]
    slowest = lagging(log, readers, newest + 1)
    if slowest is None:
        return newest, ""
    version = slowest.behind
    held = f"stream '{slowest.stream}' has read only to version {version} of {newest}"
    if version < log.first_readable() or log.takes_files(version + 1):
        return None, held
    return version, ""


def compact(
    path: str,
    readers: Sequence[Reader],
    run_id: str,
    *,
    dry_run: bool = False,
    target: int = TARGET_BYTES,
) -> tuple[int, str]:
    """Join small files in one commit; returns how many, and why no more.

    The commit says `dataChange: false`, by which streams skip it. On a local disk it holds the
    table's commit lock meanwhile: a stream's next batch waits, it does not fail. Elsewhere a
    conflicting commit makes it try again, three times, and then leave it to the next maintenance.
    """
    properties = commit_properties({"upkeep": "compact", "run": run_id})
    for _ in range(TRIES):
        with commit_lock(path):
            version, held = readable_by_all(path, readers)
            if version is None:
                return 0, held
            table = delta_table(path, version=version)
            small = compactable(table, target)
            if dry_run or not small:
                return small, ""
            try:
                done = table.optimize.compact(
                    target_size=target,
                    max_concurrent_tasks=1,
                    commit_properties=properties,
                    **writer_options(table),
                )
            except CommitFailedError:
                continue
            write_checksum(path, table.version())
            return int(done["numFilesRemoved"]), ""
    return 0, "other writers were at work each time; the next maintenance tries again"


def join_many(path: str, run_id: str) -> int:
    """Join the small files of a table that no stream reads once they are many; returns how many.

    On a local disk only, where it takes a tenth of a second. Raises TableDamaged.
    """
    if not is_local(path) or compactable(delta_table(path), SMALL_BYTES) < MANY:
        return 0
    return compact(path, (), run_id, target=SMALL_BYTES)[0]
