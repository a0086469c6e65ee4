"""The arrivals of a landing folder: which files came, in which order, kept as a table.

A file becomes a row of the arrivals table when it is settled and readable. The streaming query of
an ingest reads that table, so the order and the grouping of files are decided once and are the same
in every replay, and a file that cannot be read yet is simply not there yet.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import fs
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark.lake.create import create_table
from rivermark.lake.files import filesystem, is_local
from rivermark.lake.lake import Lake
from rivermark.lake.table import Table
from rivermark.lake.writer import Origin, TableWriter
from rivermark.sources.screen import Screening, screen
from rivermark.stream import Ingest

ARRIVALS_SCHEMA: Final = StructType(
    [
        StructField("arrival", LongType()),
        StructField("path", StringType()),
        StructField("name", StringType()),
        StructField("size", LongType()),
        StructField("modified_at", TimestampType()),
        StructField("landed_at", TimestampType()),
        StructField("format", StringType()),
        StructField("columns", StringType()),
        StructField("head", StringType()),
        StructField("status", StringType()),
        StructField("reason", StringType()),
    ]
)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def arrivals_of(ingest: Ingest) -> Table:
    """The table of files that arrived for an ingest, one commit a poll, in order of arrival."""
    return Table(
        name=f"ops/arrivals/{ingest.name}",
        schema=ARRIVALS_SCHEMA,
        description=f"Files that landed for '{ingest.name}', in the order in which they are read.",
    )


@dataclass(frozen=True)
class Waiting:
    """A file that is there and not taken yet, and why."""

    path: str
    reason: str


@dataclass
class Poll:
    """What one look into the folder found."""

    taken: int = 0
    waiting: list[Waiting] = field(default_factory=list)


class Lister:
    """Watches the landing folder of one ingest; one instance a run, under the stream's lease."""

    def __init__(self, lake: Lake, landing_root: str, ingest: Ingest, run_id: str) -> None:
        """Create the arrivals table where needed and learn which files it holds."""
        self.ingest = ingest
        self.table = arrivals_of(ingest)
        create_table(lake, self.table)
        origin = Origin(f"{ingest.name}:arrivals", 0, EPOCH, run_id)
        self._writer = TableWriter(lake, self.table, origin)
        self._root = f"{landing_root.rstrip('/')}/{ingest.source.folder}"
        self._fs, self._folder = filesystem(self._root)
        self._prefix = self._folder if is_local(self._root) else self._root
        known = DeltaTable(lake.path(self.table)).to_pyarrow_table(columns=["path", "arrival"])
        self._known: set[str] = set(known["path"].to_pylist())
        self._arrival = max(known["arrival"].to_pylist(), default=-1)
        self._seen: dict[str, tuple[int, int, float]] = {}

    def poll(self) -> Poll:
        """Take every file that is ready, at most `max_files` to an arrival; tell what waits."""
        found = Poll()
        ready: list[tuple[int, str, fs.FileInfo, Screening]] = []
        for info in self._list():
            verdict = self._judge(info)
            if verdict.verdict == "waiting":
                found.waiting.append(Waiting(info.path, verdict.reason or "not ready"))
            else:
                ready.append((info.mtime_ns, info.path, info, verdict))
        ready.sort(key=lambda r: (r[0], r[1]))
        size = self.ingest.source.max_files
        for start in range(0, len(ready), size):
            self._commit([(i, s) for _, _, i, s in ready[start : start + size]])
        found.taken = len(ready)
        return found

    def _list(self) -> list[fs.FileInfo]:
        selector = fs.FileSelector(self._folder, recursive=True, allow_not_found=True)
        patterns = [p.strip() for p in self.ingest.source.pattern.split(",")]
        return [
            info
            for info in self._fs.get_file_info(selector)
            if info.type == fs.FileType.File
            and self._path(info) not in self._known
            and not hidden(info.path[len(self._folder) :])
            and any(fnmatchcase(info.base_name, p) for p in patterns)
        ]

    def _path(self, info: fs.FileInfo) -> str:
        """The file's path as Spark can open it: absolute on a disk, with its scheme elsewhere."""
        return f"{self._prefix}{info.path[len(self._folder) :]}"

    def _judge(self, info: fs.FileInfo) -> Screening:
        source = self.ingest.source
        stamp = (info.size, info.mtime_ns)
        before = self._seen.get(info.path)
        if before is None or before[:2] != stamp:
            self._seen[info.path] = (*stamp, time.monotonic())
        watched = time.monotonic() - self._seen[info.path][2]
        # A copied file keeps an old modification time; a clock that went back gives a future one.
        quiet = max(time.time() - info.mtime_ns / 1e9, watched)
        if quiet < source.settle.total_seconds():
            return Screening("waiting", reason="changed a moment ago")
        verdict = screen(self._fs, info.path, info.size, source)
        if verdict.doubtful and quiet < source.unterminated_settle.total_seconds():
            return Screening(
                "waiting", reason=f"looks unfinished: {verdict.reason or 'no line end'}"
            )
        return verdict

    def _commit(self, files: list[tuple[fs.FileInfo, Screening]]) -> None:
        self._arrival += 1
        prefix = len(self._folder) + 1
        now = datetime.now(UTC)
        rows = [
            {
                "arrival": self._arrival,
                "path": self._path(info),
                "name": info.path[prefix:],
                "size": info.size,
                "modified_at": datetime.fromtimestamp(info.mtime_ns // 1000 / 1e6, UTC),
                "landed_at": now,
                "format": found.format,
                "columns": json.dumps(found.columns) if found.columns is not None else None,
                "head": found.head,
                "status": found.verdict,
                "reason": found.reason,
            }
            for info, found in files
        ]
        self._writer.append_once(pa.Table.from_pylist(rows, ARROW_SCHEMA), self._arrival)
        for info, _ in files:
            self._known.add(self._path(info))
            self._seen.pop(info.path, None)


ARROW_SCHEMA: Final = pa.schema(
    [
        ("arrival", pa.int64()),
        ("path", pa.string()),
        ("name", pa.string()),
        ("size", pa.int64()),
        ("modified_at", pa.timestamp("us", "UTC")),
        ("landed_at", pa.timestamp("us", "UTC")),
        ("format", pa.string()),
        ("columns", pa.string()),
        ("head", pa.string()),
        ("status", pa.string()),
        ("reason", pa.string()),
    ]
)


def hidden(path: str) -> bool:
    """Whether any part of the path says that the file is not for readers."""
    return any(part.startswith((".", "_")) for part in path.split("/") if part)
