"""The arrivals of a landing folder: which files came, in which order, kept as a table.

A file becomes a row of the arrivals table when it is settled and readable. The streaming query of
an ingest reads that table, so the order and the grouping of files are decided once and are the same
in every replay, and a file that cannot be read yet is simply not there yet.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

import pyarrow as pa
from deltalake import DeltaTable
from pyarrow import fs
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark.ingest.source.file_probe import Screening
from rivermark.ingest.source.listing import LandedFiles
from rivermark.ingest.source.seen_files import KnownFiles
from rivermark.lake.batch_writer import Origin, TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.file_source import FileSource, weight_of
from rivermark.model.stream import Ingest
from rivermark.model.table import Table

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


def arrived(lake: Lake, ingest: Ingest) -> tuple[KnownFiles, int]:
    """The files that arrived, and the newest arrival's number, -1 before the first.

    By name below the folder: a landing root that is mounted elsewhere brings nothing new.
    """
    known, newest = KnownFiles(), -1
    table = arrivals_of(ingest)
    if lake.exists(table):
        dataset = DeltaTable(lake.path(table)).to_pyarrow_dataset()
        for rows in dataset.to_batches(columns=["name", "size", "arrival"]):
            names, sizes, arrivals = (column.to_pylist() for column in rows.columns)
            newest = max([newest, *arrivals])
            for name, size in zip(names, sizes, strict=True):
                known.add(name, size)
    return known, newest


Ready = tuple[fs.FileInfo, Screening]
"""A file that can be taken, and what the look at it gave."""


@dataclass(frozen=True)
class Waiting:
    """A file that is there and not taken yet, and why."""

    path: str
    reason: str


@dataclass
class Poll:
    """What one look into the folder found.

    `changed` are files that grew or shrank after they were taken: each file is read once, so what
    came later is not in the tables, and somebody has to land it under another name. `held` is how
    many ready files wait for the batches before them.
    """

    taken: int = 0
    held: int = 0
    waiting: list[Waiting] = field(default_factory=list)
    changed: list[Waiting] = field(default_factory=list)


class Lister:
    """Watches the landing folder of one ingest; one instance a run, under the stream's lease."""

    def __init__(self, lake: Lake, landing_root: str, ingest: Ingest, run_id: str) -> None:
        """Create the arrivals table where needed and learn which files it holds."""
        self.ingest = ingest
        self.table = arrivals_of(ingest)
        create_table(lake, self.table)
        origin = Origin(f"{ingest.name}:arrivals", 0, EPOCH, run_id)
        self._writer = TableWriter(lake, self.table, origin)
        self._landed = LandedFiles(landing_root, ingest.source)
        self._known, self._arrival = arrived(lake, ingest)

    @property
    def arrival(self) -> int:
        """The newest arrival's number; -1 before the first."""
        return self._arrival

    def poll(self, *, most: int | None = None, quick: bool = False) -> Poll:
        """Take the files that are ready as arrivals, `most` of them at most; tell what waits.

        A quick look asks the storage about unknown names only, and tells of no changed files.
        """
        found = Poll()
        ready: list[tuple[int, str, Ready]] = []
        for info in self._list(found, quick=quick):
            known = self._known.size_of(self._landed.name(info))
            if known is not None:
                if known != info.size:
                    reason = f"had {known} bytes when it was read and has {info.size} now"
                    found.changed.append(Waiting(info.path, reason))
                continue
            verdict = self._landed.judge(info)
            if verdict.verdict == "waiting":
                found.waiting.append(Waiting(info.path, verdict.reason or "not ready"))
            else:
                # In microseconds, as the table keeps it: the order must not change by grouping.
                ready.append((info.mtime_ns // 1000, info.path, (info, verdict)))
        ready.sort(key=lambda r: r[:2])
        groups = [*grouped([each for _, _, each in ready], self.ingest.source)]
        for group in groups[:most]:
            self._commit(group)
            found.taken += len(group)
        found.held = len(ready) - found.taken
        return found

    def _list(self, found: Poll, *, quick: bool) -> list[fs.FileInfo]:
        """The files there are; a folder that cannot be looked into now may be at the next poll."""
        try:
            return self._landed.unknown(self._known) if quick else self._landed.all()
        except OSError as error:
            found.waiting.append(Waiting(self._landed.folder, f"cannot be read yet: {error}"))
            return []

    def _commit(self, files: Sequence[Ready]) -> None:
        self._arrival += 1
        now = datetime.now(UTC)
        rows = [
            {
                "arrival": self._arrival,
                "path": self._landed.path(info),
                "name": self._landed.name(info),
                "size": info.size,
                "modified_at": EPOCH + timedelta(microseconds=info.mtime_ns // 1000),
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
            self._known.add(self._landed.name(info), info.size)
            self._landed.forget(info)


def grouped(files: Sequence[Ready], source: FileSource) -> Iterator[list[Ready]]:
    """The files in arrivals that the source's bounds allow; a larger file is one of its own."""
    group: list[Ready] = []
    weight = 0
    for info, found in files:
        own = weight_of(info.path, found.format, info.size)
        if group and (len(group) == source.max_files or weight + own > source.max_bytes):
            yield group
            group, weight = [], 0
        group.append((info, found))
        weight += own
    if group:
        yield group


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
