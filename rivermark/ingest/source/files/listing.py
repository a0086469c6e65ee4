"""The landing folder of an ingest: the files that lie in it, and whether each is ready."""

from __future__ import annotations

import os
import time
from collections.abc import Container, Iterator
from fnmatch import fnmatchcase

from pyarrow import fs

from rivermark.ingest.source.files.file_probe import FileProbe, probe_file
from rivermark.ingest.source.files.options import FileOptions
from rivermark.lake.filesystem import filesystem, is_local


class LandedFiles:
    """Lists `<landing root>/<folder>`, which need not exist yet; writes nothing."""

    def __init__(self, landing_root: str, options: FileOptions) -> None:
        self._options = options
        self._patterns = [p.strip() for p in options.pattern.split(",")]
        self._root = root = f"{landing_root.rstrip('/')}/{options.folder}"
        self._fs, self.folder = filesystem(root)
        self._prefix = self.folder if is_local(root) else root
        self._watched: dict[str, tuple[int, int, float]] = {}

    def unknown(self, known: Container[str]) -> list[fs.FileInfo]:
        """The files for this source whose name (as `name` spells it) is not in `known`.

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

    def probe(self, info: fs.FileInfo) -> FileProbe:
        """Whether the file is ready, rejected with a reason, or has to wait."""
        name, stamp = self.name(info), (info.size, info.mtime_ns)
        before = self._watched.get(name)
        if before is None or before[:2] != stamp:
            self._watched[name] = (*stamp, time.monotonic())
        watched = time.monotonic() - self._watched[name][2]
        # A copied file keeps an old modification time; a clock that went back makes a future one.
        quiet = max(time.time() - info.mtime_ns / 1e9, watched)
        if quiet < self._options.settle.total_seconds():
            return FileProbe("waiting", reason="changed a moment ago", settling=True)
        probe = probe_file(self._fs, info.path, info.size, self._options)
        if probe.doubtful and quiet < self._options.unterminated_settle.total_seconds():
            reason = f"looks unfinished: {probe.reason or 'no line end'}"
            return FileProbe("waiting", reason=reason, settling=True)
        return probe

    def forget(self, name: str) -> None:
        """Stop watching a file."""
        self._watched.pop(name, None)


def walk(folder: str) -> Iterator[str]:
    """Paths of all that is no folder below a folder of this machine, hidden folders left out."""
    try:
        with os.scandir(folder) as entries:
            listed = [*entries]
    except FileNotFoundError:
        return
    for entry in listed:
        if not entry.is_dir():
            yield entry.path
        elif not hidden(entry.name):
            yield from walk(entry.path)


def hidden(path: str) -> bool:
    """Whether any part of the path says that the file is not for readers."""
    return any(part.startswith((".", "_")) for part in path.split("/") if part)
