"""Files that were read, moved out of the landing folder."""

from __future__ import annotations

from pyarrow import fs

from rivermark.lake.filesystem import filesystem
from rivermark.model.source import PlannedSplit


class Archive:
    """Moves files of a landing folder to a folder beside it, under the same names.

    A move that was cut short is repeated with the batch. A file that is not as it was read, and
    one that was moved already, are left alone.
    """

    def __init__(self, landing_root: str, folder: str) -> None:
        self._fs, self._folder = filesystem(f"{landing_root.rstrip('/')}/{folder}")

    def move(self, split: PlannedSplit) -> None:
        """Move the file of a split; another one of that name in the archive is kept."""
        _, source = filesystem(split.path)
        target = f"{self._folder}/{split.name}"
        landed, archived = self._fs.get_file_info([source, target])
        if landed.type != fs.FileType.File or landed.size != split.size:
            return
        if landed.mtime_ns // 1000 != round(split.modified_at.timestamp() * 1e6):
            return
        if archived.type != fs.FileType.NotFound:
            target = f"{target}~{split.batch}"
        self._fs.create_dir(target.rsplit("/", 1)[0], recursive=True)
        self._fs.move(source, target)
