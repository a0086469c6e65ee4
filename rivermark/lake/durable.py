"""Durability: contents and names that were synced, in that order, outlast a power failure.

A name may reach the disk seconds before the content of its file: a log entry that was not synced
comes back empty. Here a file gets its name after its content is synced, and a call returns when the
folder that holds the name is synced too. Object stores do so by themselves.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Final

from pyarrow import fs

AT_ONCE: Final = 4
"""Syncs under way at a time: the file system writes its journal once for those that meet, which
halves the time of a commit."""


class _Switch:
    on = True


def set_durable(*, on: bool) -> None:
    """Returns True if this process syncs what it commits (RIVERMARK_DURABLE)."""
    _Switch.on = on


def is_durable() -> bool:
    """Returns True if this process syncs what it commits."""
    return _Switch.on


def sync(paths: Iterable[str | Path]) -> None:
    """Return when the files and folders are on the disk; those that are gone are left out."""
    places = list(paths) if _Switch.on else []
    if len(places) < 2:
        for place in places:
            _sync(place)
    else:
        list(_pool().map(_sync, places))


def sync_in(store: fs.FileSystem, paths: Iterable[str]) -> None:
    """As `sync`, where the file system is this machine's."""
    if isinstance(store, fs.LocalFileSystem):
        sync(paths)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(AT_ONCE, "rivermark-sync")


# A forked process has none of its threads.
os.register_at_fork(after_in_child=_pool.cache_clear)


def _sync(path: str | Path) -> None:
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # A file system that has nothing to sync there.
            raise
    finally:
        os.close(handle)
