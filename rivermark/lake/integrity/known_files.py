"""Files that this process has checked: none is checked again while its size and time stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

REMEMBERED: Final = 4096
"""Files of a folder that a process knows at most: more entries than lie between two table
checkpoints. Of more data files than these each read checks most again, as it opens them again."""

Stamp = tuple[int, int]
"""Size and time of a file that was checked."""

CHECKED: Final[dict[str, dict[str, Stamp]]] = {}
"""By folder: the files of it that were whole, by name."""


def stamp_of(path: Path) -> Stamp:
    """The file's size and time; take it before the file is read."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def is_known(path: Path) -> bool:
    """Returns True if the file was whole as it is."""
    known = CHECKED.get(str(path.parent), {}).get(path.name)
    return known is not None and known == stamp_of(path)


def remember(path: Path, stamp: Stamp) -> None:
    """Note that the file was whole when it had that stamp."""
    checked = CHECKED.setdefault(str(path.parent), {})
    checked[path.name] = stamp
    keep_newest(checked)


def keep_newest(known: dict[Any, Any]) -> None:
    """Forget the older half of what is known of a folder that has grown for days."""
    if len(known) > REMEMBERED:
        for key in [*known][: REMEMBERED // 2]:
            del known[key]
