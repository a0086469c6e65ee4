"""Files put into a landing folder, with modification times that a test decides."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from time import time

import pyarrow as pa
import pyarrow.parquet as pq

LONG_AGO = 3600
"""Seconds before now at which the first file is said to have come: every file counts as settled."""


class Landing:
    """A landing root. Files come one second apart, in the order in which they are put."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._next = time() - LONG_AGO

    def put(self, name: str, *lines: str, end: str = "\n") -> Path:
        """A text file of these lines, gzipped where its name says so."""
        return self.put_bytes(name, "".join(line + end for line in lines).encode())

    def put_bytes(self, name: str, content: bytes) -> Path:
        """A file of exactly this content (packed where its name ends with .gz)."""
        path = self._path(name)
        path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return self.stamp(path)

    def put_parquet(self, name: str, rows: pa.Table) -> Path:
        """A Parquet file."""
        path = self._path(name)
        pq.write_table(rows, path)
        return self.stamp(path)

    def stamp(self, path: Path) -> Path:
        """Make the file the newest one."""
        self._next += 1
        os.utime(path, (self._next, self._next))
        return path

    def _path(self, name: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path
