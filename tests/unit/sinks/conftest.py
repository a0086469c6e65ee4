"""A table of fares, rows of it, and kills between any two steps of a sink."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import fs
from pyspark.sql.types import BooleanType, DoubleType, LongType, StructField, StructType
from pyspark.sql.types import TimestampType as Timestamp

from rivermark.lake.filesystem import filesystem
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.sink import Origin, SinkContext
from rivermark.model.table import Daily, Table
from setup.postgres_server import PostgresServer

if TYPE_CHECKING:
    from psycopg import Connection

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)
DAY, NEXT_DAY = date(2024, 3, 1), date(2024, 3, 2)

FARES = Table(
    name="test/fares",
    schema=StructType(
        [
            StructField("ride", LongType()),
            StructField("at", Timestamp()),
            StructField("fare", DoubleType()),
            StructField("gone", BooleanType()),
        ]
    ),
    description="Fares of rides.",
    keys=("ride",),
    days=Daily("at", DAY),
)


def fares(*rides: tuple[int, float], at: datetime = NOON) -> pa.Table:
    """Fares as (ride, fare), all of one moment."""
    return rows_of(FARES, [{"ride": r, "at": at, "fare": f, "gone": False} for r, f in rides])


def two_days(shift: float = 0.0) -> pa.Table:
    """Fares of two days."""
    later = fares((2, 2.0 + shift), at=NOON + timedelta(days=1))
    return pa.concat_tables([fares((1, 1.0 + shift)), later])


class Killed(BaseException):
    """Stands for the kill of the process: no `except Exception` holds it up."""


@dataclass
class Killer:
    """Counts the steps of a sink, and kills before the one that is due."""

    due: int | None = None
    steps: int = 0
    patch: pytest.MonkeyPatch = field(default_factory=pytest.MonkeyPatch)

    def step(self) -> None:
        """Count one step."""
        self.steps += 1
        if self.steps == self.due:
            raise Killed

    def before(self, target: str) -> None:
        """Make a step of each call of a function, or of a method of a class."""
        place, name = target.rsplit(".", 1)
        owner = resolve_name(place)
        function = getattr(owner, name)

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.step()
            return function(*args, **kwargs)

        self.patch.setattr(owner, name, counted)

    def within(self, target: str) -> None:
        """Make a step of each change of the file systems that a function opens."""

        def stepped(uri: str) -> tuple[Any, str]:
            store, path = filesystem(uri)
            return SteppedStore(store, self), path

        self.patch.setattr(target, stepped)


class SteppedStore:
    """A file system each of whose changes is a step."""

    CHANGES = ("open_output_stream", "move", "delete_file", "delete_dir", "create_dir")

    def __init__(self, store: fs.FileSystem, killer: Killer) -> None:
        self._store = store
        self._killer = killer

    def __getattr__(self, name: str) -> Any:
        if name in self.CHANGES:
            self._killer.step()
        return getattr(self._store, name)


NewContext = Callable[[], SinkContext]


@pytest.fixture
def new_context(tmp_path: Path) -> NewContext:
    """A context in a lake of its own, at each call."""
    numbers = iter(range(1000))

    def make() -> SinkContext:
        lake = Lake(str(tmp_path / str(next(numbers))))
        create_table(lake, FARES)
        return context(lake)

    return make


def connected() -> Connection:
    """A connection to the server of the tests."""
    import psycopg

    return psycopg.connect(os.environ["TEST_DATABASE"], autocommit=True)


@pytest.fixture
def new_schema(postgres: PostgresServer) -> Callable[[], None]:
    """Empties the database of the tests; called once already."""

    def empty() -> None:
        with connected() as connection:
            connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")

    empty()
    return empty


def context(lake: Lake, table: Table = FARES, generation: int = 0) -> SinkContext:
    """What a sink is opened for."""
    began = datetime.now(UTC)
    origin = Origin("test/fares", generation, began, "run")
    return SinkContext(root=lake.root, retention=lake.retention, table=table, origin=origin)


def by_ride(rows: pa.Table) -> list[Mapping[str, Any]]:
    """Rows in the order of rides and fares."""
    return sorted(rows.to_pylist(), key=lambda row: (row["ride"], row["fare"]))
