"""One writer at a time for the moment of a commit, where the file system cannot promise it.

On a local disk Delta's JVM and delta-rs both look for the next version's file and then rename onto
it; two processes doing so at once could overwrite each other. A lock file per table closes the gap.
Object stores have put-if-absent of their own and need none.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rivermark.lake.files import filesystem, is_local


@contextmanager
def commit_lock(table_path: str) -> Iterator[None]:
    """Hold the table's commit lock; the kernel frees it when the holder dies."""
    if not is_local(table_path):
        yield
        return
    path = Path(filesystem(table_path)[1])
    if not path.exists():
        yield
        return
    with (path / "_commit.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
