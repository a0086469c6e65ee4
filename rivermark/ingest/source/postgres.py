"""A table of PostgreSQL as reference data: read whole, and again when its version or time says so.

A read is one planned batch, of one snapshot of the database, which its tasks share. A batch that is
repeated before its raw rows are committed is read again whole, of another snapshot.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import msgspec
from pyspark.sql import SparkSession

from rivermark.connect.postgres import Database, Session
from rivermark.ingest.source.payload import held
from rivermark.ingest.source.postgres_pieces import (
    SNAPSHOT,
    Blocks,
    BlocksPiece,
    keep_values,
    named,
    ranges_of,
)
from rivermark.model.bounds import check_above_zero
from rivermark.model.declared import declared
from rivermark.model.json_text import json_text
from rivermark.model.source import (
    Backlog,
    Discovery,
    Piece,
    PlannedSplit,
    PlanRows,
    Records,
    Source,
    SourceReader,
    Split,
)

if TYPE_CHECKING:
    from psycopg import Connection


@declared("source", lambda values: values.get("table"))
@dataclass(frozen=True, kw_only=True)
class PostgresSource(Source):
    """All rows of a table or view of PostgreSQL, for an ingest with `kind="lookup"`.

    They are read again after each `every`. With `version`, a query for one value such as `SELECT
    max(changed_at) FROM stores` that runs in each batch, they are read again when that value
    changes. `table` is a name, or schema.table; `database` and `settings` are as those of a
    `PostgresAppend`. A row that is deleted there stays in the lookup.
    """

    table: str
    database: str = ""
    settings: Mapping[str, str] = field(default_factory=dict, hash=False, repr=False)
    version: str | None = None
    every: timedelta = timedelta(hours=1)

    kind: ClassVar[str] = "postgres"
    unit: ClassVar[str] = "part"
    read_whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Database(self.database, self.settings).check(f"source '{self.table}'")
        check_above_zero(f"source '{self.table}'", every=self.every)

    @property
    def name(self) -> str:
        """The table."""
        return self.table

    @property
    def asset(self) -> tuple[str, ...]:
        """The table, below `postgres`."""
        return ("postgres", self.table.replace(".", "_"))

    @property
    def description(self) -> str:
        """The table."""
        return f"Rows of the table `{self.table}` in PostgreSQL."

    def open(self, landing_root: str) -> SourceReader:
        """Open the table; it is read when a run plans."""
        return _Reader(self)


class _Read(NamedTuple):
    """A read of the table: its number, its time, and the version then."""

    number: int
    at: str
    version: str | None


class _Position(msgspec.Struct):
    """The part of a split's path that a start needs."""

    read: _Read
    parts: int


class _Reader(SourceReader):
    def __init__(self, source: PostgresSource) -> None:
        self._source = source
        database = Database(source.database, source.settings)
        self._session = Session(database, f"rivermark source {source.name}", reads=True)
        self._snapshots = Session(database, f"rivermark source {source.name}", reads=True)
        self._reading = ExitStack()
        """Holds the transaction whose snapshot is read."""
        self._wanted: frozenset[str] | None = None
        self._last: _Read | None = None
        self._next = 0
        self._ready: list[Split] = []

    def expect(self, columns: Collection[str]) -> None:
        self._wanted = frozenset(name.lower() for name in columns)

    def restore(self, plan: PlanRows) -> None:
        parts: dict[_Read, int] = {}
        for (path,) in plan("path"):
            position = msgspec.json.decode(path, type=_Position)
            # A read of which only some parts were planned, before a kill, is done again.
            parts[position.read] = parts.get(position.read, position.parts) - 1
        self._next = max((read.number for read in parts), default=-1) + 1
        self._last = max((read for read, missing in parts.items() if not missing), default=None)

    def planned(self, splits: Sequence[Split]) -> None:
        names = {split.name for split in splits}
        self._ready = [split for split in self._ready if split.name not in names]

    def discover(self, *, full: bool = True) -> Discovery:
        if not self._ready:
            self._session.run(f"cannot read table {self._source.name}", self._read_if_due)
        return Discovery([*self._ready])

    def _read_if_due(self, connection: Connection) -> None:
        read = self._due(connection)
        if read is not None:
            self._ready = _splits(read, *ranges_of(connection, self._source.table))
            self._last, self._next = read, read.number + 1

    def _due(self, connection: Connection) -> _Read | None:
        """The read that is due, if one is."""
        keep_values(connection)
        connection.execute(SNAPSHOT)
        now, last, version = datetime.now(UTC), self._last, None
        if self._source.version is not None:
            row = connection.execute(self._source.version.encode()).fetchone()
            version = json_text(None if row is None else row[0]).decode()
            is_due = last is None or last.version != version
        else:
            is_due = last is None or now - datetime.fromisoformat(last.at) >= self._source.every
        return _Read(self._next, now.isoformat(), version) if is_due else None

    def batches(self, ready: Sequence[Split]) -> Iterable[list[Split]]:
        """A read is a planned batch."""
        return [[*ready]] if ready else []

    def pieces(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], most_bytes: int
    ) -> Sequence[Piece]:
        """Its splits, of a snapshot that stays until they are committed."""
        positions = [json.loads(split.path) for split in splits]
        if any("lines" in position for position in positions):
            # Planned by a release that kept the rows there.
            return held(splits, [position["lines"] for position in positions])
        snapshot = self._begin(has_blocks=any(position["blocks"] for position in positions))
        pieces = []
        for split, position in zip(splits, positions, strict=True):
            blocks = position["blocks"]
            pieces.append(
                BlocksPiece(
                    splits=(split.name,),
                    weight=split.weight,
                    session=self._tasks,
                    snapshot=snapshot,
                    table=self._source.table,
                    blocks=None if blocks is None else Blocks(*blocks),
                    wanted=self._wanted,
                )
            )
        return pieces

    def _begin(self, *, has_blocks: bool) -> str:
        """Take a snapshot that others may read too; returns its name."""
        from psycopg.sql import SQL

        self._reading.close()
        what = f"cannot read table {self._source.table}"
        self._connection = self._reading.enter_context(self._snapshots.transaction(what))
        self._tasks = self._snapshots.for_tasks()
        self._connection.execute(SNAPSHOT)
        if has_blocks:
            # Before the snapshot: who rewrites or empties the table does so for older ones too.
            lock = SQL("LOCK TABLE {} IN ACCESS SHARE MODE").format(named(self._source.table))
            self._connection.execute(lock)
        row = self._connection.execute("SELECT pg_export_snapshot()").fetchone()
        return str(row[0]) if row else ""

    def read(self, piece: Piece) -> Iterator[Records]:
        """Read a piece by the connection that has the snapshot."""
        return piece.read_by(self._connection) if isinstance(piece, BlocksPiece) else piece.read()

    def committed(self, splits: Sequence[PlannedSplit]) -> None:
        """Let the snapshot go."""
        self._reading.close()

    def backlog(self) -> Backlog:
        due = self._session.run(f"cannot read table {self._source.name}", self._due)
        if due is None:
            return Backlog()
        return Backlog(splits=1, oldest=datetime.fromisoformat(due.at))

    def close(self) -> None:
        """Close the connections."""
        self._reading.close()
        for session in (self._session, self._snapshots):
            session.close()


def _splits(read: _Read, ranges: Sequence[Blocks | None], total: int) -> list[Split]:
    return [
        Split(
            name=f"read-{read.number:08d}-{part:04d}",
            path=json.dumps({"read": read, "parts": len(ranges), "blocks": blocks}),
            size=total // len(ranges),
            modified_at=datetime.fromisoformat(read.at),
            format="json",
        )
        for part, blocks in enumerate(ranges)
    ]
