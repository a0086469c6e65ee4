"""One writer at a time for the moment of a commit, where the file system does not ensure it.

On a local disk Delta's JVM and delta-rs both look for the next version's file and then rename onto
it; two processes doing so at once could overwrite each other. A lock file per table closes the gap.
Object stores have put-if-absent of their own and need none.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

from rivermark.lake.durable import is_durable, sync
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.lake.integrity.data_file_check import lacks_checksums
from rivermark.lake.integrity.log_entry import actions_in, entry_path
from rivermark.lake.integrity.log_listing import LAST_CHECKPOINT, LogListing, listing_of
from rivermark.lake.integrity.sidecar import sidecar_of, write_sidecar


@contextmanager
def commit_lock(table_path: str, *, synced: bool = False) -> Iterator[None]:
    """Hold the table's commit lock; the kernel frees it when the holder dies.

    What the block committed is synced at its end, unless it does so itself (`synced`): neither
    Delta's JVM nor delta-rs does.
    """
    with _lock(table_path, "_commit.lock"):
        before = -1 if synced else newest_version(table_path)
        yield
        if not synced:
            sync_commits(table_path, before)


def newest_version(table_path: str) -> int:
    """The newest version by the log, where commits need syncing; otherwise, and without one, -1."""
    return listing_of(table_path).newest if is_durable() and is_local(table_path) else -1


def sync_commits(table_path: str, after: int) -> None:
    """Sync the commits behind that version with what they add, and a table checkpoint of them."""
    if not (is_durable() and is_local(table_path)):
        return
    listing = listing_of(table_path)
    entries = [Path(entry_path(listing.folder, v)) for v in listing.entries if v > after]
    if entries:
        table = Path(listing.folder).parent
        actions = (a for entry in entries for a in actions_in(str(entry), entry.read_bytes()))
        files = {table / unquote(a["add"]["path"]) for a in actions if "add" in a}
        # Spark's own have Hadoop's checksums beside them, those of delta-rs have none at all.
        for file in files:
            if lacks_checksums(file):
                write_sidecar(file, durable=True)
        sums = [sidecar_of(file) for file in (*files, *entries)]
        sync([*files, *{file.parent for file in files}, *entries, *sums, table])
        sync_checkpoint(listing)


def sync_checkpoint(listing: LogListing) -> None:
    """Sync the newest table checkpoint of a log, and the names in it."""
    names = listing.checkpoints.get(max(listing.checkpoints, default=-1), [])
    hint = [LAST_CHECKPOINT] if names else []
    sync([*(f"{listing.folder}/{name}" for name in (*names, *hint)), listing.folder])


@contextmanager
def days_lock(table_path: str) -> Iterator[None]:
    """Hold the right to compute days of a table, from the reading of the input to the commit.

    One that reads first and commits last would put back what another replaced in between: a
    backfill the rows that it read, over a refresh that read newer ones.
    """
    with _lock(table_path, "_days.lock"):
        yield


@contextmanager
def try_days_lock(table_path: str) -> Iterator[bool]:
    """The right to compute days, where it is free now; yields whether it was taken."""
    with _lock(table_path, "_days.lock", wait=False) as held:
        yield held


@contextmanager
def try_merge_lock(table_path: str) -> Iterator[bool]:
    """The right to merge late rows of a lake, where it is free now; yields whether it was taken."""
    with _lock(table_path, "_fold.lock", wait=False) as held:
        yield held


@contextmanager
def _lock(table_path: str, name: str, *, wait: bool = True) -> Iterator[bool]:
    if not is_local(table_path):
        yield True
        return
    path = Path(filesystem(table_path)[1])
    if not path.exists():
        yield True
        return
    with (path / name).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
            return
        yield True
