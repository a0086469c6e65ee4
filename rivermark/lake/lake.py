"""Where each table, checkpoint and record of the platform lies below one root."""

from __future__ import annotations

from pyarrow import fs

from rivermark.errors import RivermarkError
from rivermark.lake.files import filesystem
from rivermark.lake.table import NAME, Table


class Lake:
    """Paths below a root: `tables/`, `checkpoints/`, and the platform's own tables below `ops/`."""

    def __init__(self, root: str) -> None:
        """Take the root, a folder or a URI."""
        self.root = root.rstrip("/")

    def path(self, table: Table | str) -> str:
        """Folder of a table; refuses names that would leave the lake."""
        name = table if isinstance(table, str) else table.name
        if not NAME.fullmatch(name):
            raise RivermarkError(f"{name!r} is not a table name: expected like 'taxi/hourly_tips'")
        return f"{self.root}/tables/{name}"

    def checkpoint(self, stream: str, generation: int) -> str:
        """Folder of a stream's Spark checkpoint; a new generation starts from nothing."""
        return f"{self.root}/checkpoints/{stream}/{generation:04d}"

    def exists(self, table: Table | str) -> bool:
        """Whether the table was created."""
        store, path = filesystem(f"{self.path(table)}/_delta_log")
        info: fs.FileInfo = store.get_file_info(path)
        return bool(info.type == fs.FileType.Directory)
