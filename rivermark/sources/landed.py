"""What lies in the landing folder of an ingest: files not taken yet, and whether each is ready."""

from __future__ import annotations

import time
from collections.abc import Container
from fnmatch import fnmatchcase

from pyarrow import fs

from rivermark.lake.files import filesystem, is_local
from rivermark.sources.files import FileSource
from rivermark.sources.screen import Screening, screen


class LandedFiles:
    """A look into `<landing root>/<folder>`; takes nothing and writes nothing."""

    def __init__(self, landing_root: str, source: FileSource) -> None:
        """Name the folder, which need not exist yet."""
        self.source = source
        root = f"{landing_root.rstrip('/')}/{source.folder}"
        self._fs, self.folder = filesystem(root)
        self._prefix = self.folder if is_local(root) else root
        self._seen: dict[str, tuple[int, int, float]] = {}

    def unknown(self, known: Container[str]) -> list[fs.FileInfo]:
        """The files for this source whose name (as `name` tells it) is not known."""
        return [info for info in self.all() if self.name(info) not in known]

    def all(self) -> list[fs.FileInfo]:
        """The files for this source; raises OSError while the folder cannot be looked into."""
        selector = fs.FileSelector(self.folder, recursive=True, allow_not_found=True)
        patterns = [p.strip() for p in self.source.pattern.split(",")]
        return [
            info
            for info in self._fs.get_file_info(selector)
            if info.type == fs.FileType.File
            and not hidden(info.path[len(self.folder) :])
            and any(fnmatchcase(info.base_name, p) for p in patterns)
        ]

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


def hidden(path: str) -> bool:
    """Whether any part of the path says that the file is not for readers."""
    return any(part.startswith((".", "_")) for part in path.split("/") if part)
