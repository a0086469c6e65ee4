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

from rivermark.lake.filesystem import filesystem, is_local


@contextmanager
def commit_lock(table_path: str) -> Iterator[None]:
    """Hold the table's commit lock; the kernel frees it when the holder dies."""
    with _lock(table_path, "_commit.lock"):
        yield


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
