"""A full disk, told from other errors, with the path that it is about."""

from __future__ import annotations

import errno
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NUMBERS: Final = (errno.ENOSPC, errno.EDQUOT)
SIGNS: Final = ("No space left on device", "Disk quota exceeded", "(os error 28)", "(os error 122)")
"""How the kernel's two errors read in what Java, Rust and Arrow say of them."""
LIBRARIES: Final = frozenset({"py4j", "pyspark", "deltalake", "_internal", "pyarrow", "duckdb"})
"""Whose errors are of this machine's disks: a service says of its own in the same words."""
PATH: Final = re.compile(r"(?<![\w/.])(?:file:)?(/[^\s'\":,;]+)")


def is_disk_full(error: BaseException) -> bool:
    """Returns True if an error, or one that it came from, says that there is no space left."""
    return any(_is_full(each) for each in chain(error))


def full_path(error: BaseException, *written: str | Path) -> str:
    """The path whose disk is full: the one that the error names, or of `written` the fullest.

    Spark's own temporary files are always among what was written.
    """
    for each in chain(error):
        if isinstance(each, OSError) and each.filename and _is_full(each):
            return str(each.filename)
    for line in str(error).splitlines():
        if any(sign in line for sign in SIGNS) and (named := PATH.search(line)):
            return named[1]
    free = {}
    for place in (*written, tempfile.gettempdir()):
        path = Path(str(place).removeprefix("file://"))
        try:
            existing = next(each for each in (path, *path.parents) if each.exists())
            free[str(path)] = shutil.disk_usage(existing).free
        except (OSError, StopIteration):
            continue
    return min(free, key=free.__getitem__)


def device_of(path: str) -> str:
    """The device that a path lies on, or would: the same for all that it stops when it is full."""
    place = Path(path.removeprefix("file://"))
    try:
        return str(next(each for each in (place, *place.parents) if each.exists()).stat().st_dev)
    except (OSError, StopIteration):
        return path


@contextmanager
def naming(path: str | Path) -> Iterator[None]:
    """Let an error of a full disk name the path that was being written."""
    try:
        yield
    except OSError as error:
        if not _is_full(error) or error.filename:
            raise
        raise OSError(error.errno or errno.ENOSPC, "No space left on device", str(path)) from error


def _is_full(error: BaseException) -> bool:
    if isinstance(error, OSError) and error.errno in NUMBERS:
        return True
    of_a_library = type(error).__module__.partition(".")[0] in LIBRARIES
    if not (of_a_library or isinstance(error, OSError)):
        return False
    return any(sign in str(error) for sign in SIGNS)


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error, what it came from, and so on, but for what was cut off by `from None`."""
    seen: set[int] = set()
    following: BaseException | None = error
    while following is not None and id(following) not in seen:
        seen.add(id(following))
        yield following
        hidden = following.__suppress_context__
        following = following.__cause__ or (None if hidden else following.__context__)
