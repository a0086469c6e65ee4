"""What lies in the landing folder of an ingest: files not taken yet, and whether each is ready."""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterator
from fnmatch import fnmatchcase

from pyarrow import fs

from rivermark.ingest.source.file_probe import Screening, screen
from rivermark.lake.filesystem import filesystem, is_local
from rivermark.model.file_source import FileSource


class LandedFiles:
    """A look into `<landing root>/<folder>`; takes nothing and writes nothing."""

    def __init__(self, landing_root: str, source: FileSource) -> None:
        """Name the folder, which need not exist yet."""
        self.source = source
        self._patterns = [p.strip() for p in source.pattern.split(",")]
        self._root = root = f"{landing_root.rstrip('/')}/{source.folder}"
        self._fs, self.folder = filesystem(root)
        self._prefix = self.folder if is_local(root) else root
        self._seen: dict[str, tuple[int, int, float]] = {}

    def unknown(self, known: Container[str]) -> list[fs.FileInfo]:
        """The files for this source whose name (as `name` tells it) is not known.

        On a disk only those are looked at: a thousand known names cost less than a millisecond.
        """
        if not is_local(self._root):
            return [info for info in self.all() if self.name(info) not in known]
        fresh = [
            path
            for path in walk(self.folder)
            if path[len(self.folder) + 1 :] not in known and self._is_ours(path)
        ]
        infos = self._fs.get_file_info(fresh) if fresh else []
        return [info for info in infos if info.type == fs.FileType.File]

    def all(self) -> list[fs.FileInfo]:
        """The files for this source; raises OSError while the folder cannot be looked into."""
        selector = fs.FileSelector(self.folder, recursive=True, allow_not_found=True)
        return [
            info
            for info in self._fs.get_file_info(selector)
            if info.type == fs.FileType.File and self._is_ours(info.path)
        ]

    def _is_ours(self, path: str) -> bool:
        name = path.rsplit("/", 1)[-1]
        return not hidden(path[len(self.folder) :]) and any(
            fnmatchcase(name, pattern) for pattern in self._patterns
        )

    def path(self, info: fs.FileInfo) -> str:
        """The file's path as Spark can open it: absolute on a disk, with its scheme elsewhere."""
        return f"{self._prefix}{info.path[len(self.folder) :]}"

    def name(self, info: fs.FileInfo) -> str:
        """The file's path below the folder."""
        return str(info.path[len(self.folder) + 1 :])

    def judge(self, info: fs.FileInfo) -> Screening:
        """Whether the file is ready, set aside with a reason, or to be waited for."""
        stamp = (info.size, info.mtime_ns)
        before = self._seen.get(info.path)
        if before is None or before[:2] != stamp:
            self._seen[info.path] = (*stamp, time.monotonic())
        watched = time.monotonic() - self._seen[info.path][2]
        # A copied file keeps an old modification time; a clock that went back gives a future one.
        quiet = max(time.time() - info.mtime_ns / 1e9, watched)
        if quiet < self.source.settle.total_seconds():
            return Screening("waiting", reason="changed a moment ago")
        verdict = screen(self._fs, info.path, info.size, self.source)
        if verdict.doubtful and quiet < self.source.unterminated_settle.total_seconds():
            return Screening(
                "waiting", reason=f"looks unfinished: {verdict.reason or 'no line end'}"
            )
        return verdict

    def forget(self, info: fs.FileInfo) -> None:
        """Stop watching a file that was taken."""
        self._seen.pop(info.path, None)


def walk(folder: str) -> Iterator[str]:
    """Paths of all that is no folder below a folder of this machine, hidden folders left out."""
    try:
        with os.scandir(folder) as entries:
            found = [*entries]
    except FileNotFoundError:
        return
    for entry in found:
        if not entry.is_dir():
            yield entry.path
        elif not hidden(entry.name):
            yield from walk(entry.path)


def hidden(path: str) -> bool:
    """Whether any part of the path says that the file is not for readers."""
    return any(part.startswith((".", "_")) for part in path.split("/") if part)
