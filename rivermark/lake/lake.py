"""Places of tables, checkpoints and records of the platform below one root."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyarrow import fs

from rivermark.lake.filesystem import filesystem
from rivermark.model.errors import WrongUse
from rivermark.model.names import NAME
from rivermark.model.table import Table

RETENTION: Final = timedelta(days=7)
"""How far back every version of a table can be read, where nothing else is set."""


class Lake:
    """Paths below a root: `tables/`, `checkpoints/`, and the platform's own tables below `ops/`.

    `retention` is the span for which each version of its tables stays readable, unless a table
    declares its own.
    """

    def __init__(self, root: str, retention: timedelta = RETENTION) -> None:
        """Take the root, a folder or a URI."""
        self.root = root.rstrip("/")
        self.retention = retention

    def path(self, table: Table | str) -> str:
        """Folder of a table; refuses names that would leave the lake."""
        name = table if isinstance(table, str) else table.name
        if not NAME.fullmatch(name):
            raise WrongUse(f"{name!r} is not a table name: expected like 'taxi/hourly_tips'")
        return f"{self.root}/tables/{name}"

    def staged(self, table: Table | str) -> str:
        """Folder of rows that are looked at before they are published; no reader knows it."""
        return f"{self.root}/staged/{self.path(table).removeprefix(f'{self.root}/tables/')}"

    def staged_runs(self) -> str:
        """Folder of the rows that recomputes have computed, a folder for each of them."""
        return f"{self.root}/staged/_runs"

    def checkpoint(self, stream: str, generation: int) -> str:
        """Folder of a stream's Spark checkpoint; a new generation starts from nothing."""
        return f"{self.root}/checkpoints/{stream}/{generation:04d}"

    def exists(self, table: Table | str) -> bool:
        """Returns True if the table was created."""
        store, path = filesystem(f"{self.path(table)}/_delta_log")
        info: fs.FileInfo = store.get_file_info(path)
        return bool(info.type == fs.FileType.Directory)
