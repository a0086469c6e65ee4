"""A table of PostgreSQL as reference data: read whole, and again when its version or time says so.

A table is another one at each read, so the rows that were read are kept in the plan: a batch that
is repeated takes them from there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache, partial
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

import msgspec
from pyspark.sql import SparkSession

from rivermark.connect.postgres import Database, Session
from rivermark.ingest.source.payload import held, json_payload
from rivermark.model.bounds import check_above_zero
from rivermark.model.declared import declared
from rivermark.model.json_text import json_text
from rivermark.model.source import (
    Backlog,
    Discovery,
    Piece,
    PlannedSplit,
    PlanRows,
    Source,
    SourceReader,
    Split,
)

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.abc import Buffer, Loader

ROWS_A_SPLIT: Final = 5_000


@declared("source", lambda values: values.get("table"))
@dataclass(frozen=True, kw_only=True)
class PostgresSource(Source):
    """All rows of a table or view of PostgreSQL, for an ingest with `kind="lookup"`.

    They are read again `every` so long; with `version`, a query for one value such as `SELECT
    max(changed_at) FROM stores`, when that value is another one, looked at in each batch. `table`
    is a name, or schema.table; `database` and `settings` are as those of a `PostgresAppend`. A row
    that was deleted there stays in the lookup.
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
    """The part of a split's path that a start needs, whose lines are passed over."""

    read: _Read
    parts: int


class _Reader(SourceReader):
    def __init__(self, source: PostgresSource) -> None:
        self._source = source
        database = Database(source.database, source.settings)
        self._session = Session(database, f"rivermark source {source.name}", reads=True)
        self._last: _Read | None = None
        self._next = 0
        self._ready: list[Split] = []

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
            self._ready = self._splits(read, self._payloads(connection))
            self._last, self._next = read, read.number + 1

    def _due(self, connection: Connection) -> _Read | None:
        """The read that is due, if one is; what is read in it is of the moment of its version."""
        keep_values(connection)
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        now, last, version = datetime.now(UTC), self._last, None
        if self._source.version is not None:
            row = connection.execute(self._source.version.encode()).fetchone()
            version = json_text(None if row is None else row[0]).decode()
            is_due = last is None or last.version != version
        else:
            is_due = last is None or now - datetime.fromisoformat(last.at) >= self._source.every
        return _Read(self._next, now.isoformat(), version) if is_due else None

    def _payloads(self, connection: Connection) -> list[str]:
        from psycopg.rows import dict_row
        from psycopg.sql import SQL, Identifier

        query = SQL("SELECT * FROM {}").format(Identifier(*self._source.table.split(".")))
        with connection.cursor(row_factory=dict_row) as cursor:
            return [json_payload(row) for row in cursor.execute(query)]

    def _splits(self, read: _Read, payloads: list[str]) -> list[Split]:
        starts = range(0, max(len(payloads), 1), ROWS_A_SPLIT)
        splits = []
        for part, start in enumerate(starts):
            position = {
                "read": read,
                "part": part,
                "parts": len(starts),
                "lines": payloads[start : start + ROWS_A_SPLIT],
            }
            path = json.dumps(position)
            splits.append(
                Split(
                    name=f"read-{read.number:08d}-{part:04d}",
                    path=path,
                    size=len(path),
                    modified_at=datetime.fromisoformat(read.at),
                    format="json",
                )
            )
        return splits

    def pieces(
        self, spark: SparkSession, splits: Sequence[PlannedSplit], most_bytes: int
    ) -> Sequence[Piece]:
        return held(splits, [json.loads(split.path)["lines"] for split in splits])

    def backlog(self) -> Backlog:
        due = self._session.run(f"cannot read table {self._source.name}", self._due)
        if due is None:
            return Backlog()
        return Backlog(splits=1, oldest=datetime.fromisoformat(due.at))

    def close(self) -> None:
        """Close the connection."""
        self._session.close()


def keep_values(connection: Connection) -> None:
    """Have each value come as it is; one that Python has not, such as `infinity`, as its text.

    A number within JSON would be a double, and a month of an interval thirty days.
    """
    from psycopg.types.json import set_json_loads

    for kind, loader in _loaders().items():
        connection.adapters.register_loader(kind, loader)
    set_json_loads(partial(json.loads, parse_float=Decimal), connection)


@cache
def _loaders() -> dict[str, type[Loader]]:
    from psycopg import DataError
    from psycopg.types import datetime as times
    from psycopg.types.string import TextLoader

    def or_text(loader: type[Loader]) -> type[Loader]:
        class OrText(loader):  # type: ignore[misc, valid-type]
            def load(self, data: Buffer) -> object:
                try:
                    return super().load(data)
                except DataError:
                    return bytes(data).decode()

        return OrText

    return {
        "date": or_text(times.DateLoader),
        "time": or_text(times.TimeLoader),
        "timetz": or_text(times.TimetzLoader),
        "timestamp": or_text(times.TimestampLoader),
        "timestamptz": or_text(times.TimestamptzLoader),
        "interval": TextLoader,
    }
