"""Few large files instead of many small ones, without a JVM and without a change to any row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError

from rivermark.lake.append.data_file import Tree, removal, remove_files
from rivermark.lake.append.delta_commit import DeltaCommitter
from rivermark.lake.append.table_files import TableFiles
from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import commit_properties
from rivermark.lake.delta import delta_table
from rivermark.lake.filesystem import is_local
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.reader_positions import Reader, lagging
from rivermark.lake.statistics import file_sizes
from rivermark.lake.unbounded import writer_options

TARGET_BYTES: Final = 32 * 1024 * 1024
"""Files are joined up to this size. Those of half of it are left alone: a row is written again
once or twice, whatever the table holds."""
FEWEST: Final = 8
"""So many small files must have come together before they are written again."""
TRIES: Final = 3
OTHERS: Final = "other writers were at work each time; the next maintenance tries again"
MANY: Final = 64
"""So many are joined without waiting for the nightly maintenance, which each reader would open."""
SMALL_BYTES: Final = 256 * 1024
"""Up to this size they are joined then: what a run writes again by the way stays small."""


def is_small(size: int, target: int) -> bool:
    """True if a file is to be joined with others."""
    return size < target // 2


def compactable(table: DeltaTable, target: int = TARGET_BYTES) -> int:
    """Number of that version's files small enough to be joined; 0 when it would not pay."""
    small = sum(is_small(size, target) for size in file_sizes(table))
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

    The commit says `dataChange: false`, by which streams skip it. Files are written before the
    table's commit lock is taken, one in memory at a time, and those of which another writer took
    one out meanwhile are left to the next maintenance.
    """
    version, held = readable_by_all(path, readers)
    if version is None:
        return 0, held
    table = delta_table(path, version=version)
    small = compactable(table, target)
    if dry_run or not small:
        return small, ""
    metadata = {"upkeep": "compact", "run": run_id}
    committer = DeltaCommitter(path)
    files = committer.files()
    if files is None:
        return _by_delta_rs(path, version, metadata, target)
    joined: list[tuple[list[Named], list[Tree]]] = []
    try:
        joined += ((own, _join(files, own)) for own in _bins(table, target))
    except BaseException:
        remove_files(path, [add for _, adds in joined for add in adds])
        raise
    with commit_lock(path):
        newest = delta_table(path)
        live = {*newest.get_add_actions()["path"].to_pylist()}
        removes, adds = list[Tree](), list[Tree]()
        for own, added in joined:
            if live.issuperset(name for name, _ in own):
                removes += (removal(*each, data_change=False) for each in own)
                adds += added
            else:
                remove_files(path, added)
        is_done = removes and committer.replace_files(
            newest.version(), removes, adds, metadata, "OPTIMIZE"
        )
    if not is_done:
        return 0, OTHERS
    return len(removes), ""


Named = tuple[str, int]
"""A file by its name as the log spells it, and its bytes."""


def _bins(table: DeltaTable, target: int) -> list[list[Named]]:
    """Small files that were committed one after the other, as many as make a whole one.

    So each has rows of a short time, and one that is whole is small no more.
    """
    added = pa.table(table.get_add_actions()).sort_by("modification_time")
    bins: list[list[Named]] = [[]]
    for each in added.select(["path", "size_bytes"]).to_pylist():
        name, size = each["path"], each["size_bytes"]
        if not is_small(size, target):
            continue
        if sum(own for _, own in bins[-1]) + size > target:
            bins.append([])
        bins[-1].append((name, size))
    return [own for own in bins if len(own) > 1]


def _join(files: TableFiles, names: Sequence[Named]) -> list[Tree]:
    """Write a file with the rows of others; returns the action that adds it."""
    rows = [files.read(unquote(name)) for name, _ in names]
    adds = files.write(pa.concat_tables(rows, promote_options="default"))
    for each in adds:
        each["add"]["dataChange"] = False
    return adds


def _by_delta_rs(path: str, version: int, metadata: dict[str, str], target: int) -> tuple[int, str]:
    """As `compact`, of tables that are not on this machine's disk or have further features.

    Under the commit lock, where there is one: a conflicting commit makes it try again, three times.
    """
    for _ in range(TRIES):
        with commit_lock(path):
            table = delta_table(path, version=version)
            try:
                done = table.optimize.compact(
                    target_size=target,
                    max_concurrent_tasks=1,
                    commit_properties=commit_properties(metadata),
                    **writer_options(table),
                )
            except CommitFailedError:
                continue
            write_checksum(path, table.version())
            return int(done["numFilesRemoved"]), ""
    return 0, OTHERS


def join_many(path: str, run_id: str) -> int:
    """Join the small files of a table that no stream reads once they are many; returns how many.

    On a local disk only, where it takes a tenth of a second. Raises TableDamaged.
    """
    if not is_local(path) or compactable(delta_table(path), SMALL_BYTES) < MANY:
        return 0
    return compact(path, (), run_id, target=SMALL_BYTES)[0]
