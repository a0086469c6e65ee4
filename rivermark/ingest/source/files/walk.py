"""Walking a landing folder on a disk: each file once, whatever links lead to it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

COPYING: Final = "._COPYING_"
"""What Hadoop's copies are called until they are complete; Spark reads no file of such a name."""


@dataclass
class Walk:
    """The paths below a folder that are no folders; hidden ones are left out.

    A link is followed where it leads to what lies within `landing` and is not walked anyway, and
    each folder is entered once: a cycle ends, no file has two names, and no link makes other files
    of this machine into rows. `closed` are the folders that could not be listed and the links that
    lead out, with the error of each. Paths keep bytes that are no text as surrogates.
    """

    folder: str
    landing: str
    is_taken: Callable[[str], bool]
    """Whether a path below the folder is one of those that are wanted."""
    closed: list[tuple[str, OSError]] = field(default_factory=list)

    def paths(self) -> Iterator[str]:
        """Walk, in the order of names."""
        self._root = os.path.realpath(self.folder)
        # The folder itself may be a link to another disk.
        self._within = (self._root, os.path.realpath(self.landing))
        self._entered = {self._root}
        yield from self._below(self.folder, self._root)

    def _below(self, folder: str, real: str) -> Iterator[str]:
        try:
            with os.scandir(folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            return
        except OSError as error:
            self.closed.append((folder, error))
            return
        for entry in listed:
            if hidden(entry.name):
                continue
            is_folder = _is_folder(entry)
            target = f"{real}/{entry.name}"
            if entry.is_symlink():
                link, target = target, os.path.realpath(entry.path)
                if target != link and self._is_walked(target, is_folder):
                    continue
                if not any(target.startswith(f"{root}/") for root in self._within):
                    reason = "a link out of the landing folder is not followed"
                    self.closed.append((entry.path, PermissionError(errno.EACCES, reason)))
                    continue
            if not is_folder:
                yield entry.path
            elif target not in self._entered:
                self._entered.add(target)
                yield from self._below(entry.path, target)

    def _is_walked(self, target: str, is_folder: bool) -> bool:
        """Returns True if a link's target is reached without it, or holds the folder itself."""
        below = target[len(self._root) + 1 :] if target.startswith(f"{self._root}/") else None
        if is_folder:
            around = f"{self._root}/".startswith(f"{target}/")
            return around or (below is not None and not hidden(below))
        return below is not None and self.is_taken(below)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        # A link that leads to itself; looked at as a file it is reported.
        return False


def hidden(path: str) -> bool:
    """Returns True if any part of the path says that the file is not for readers."""
    return any(
        part.startswith((".", "_")) or part.endswith(COPYING) for part in path.split("/") if part
    )
