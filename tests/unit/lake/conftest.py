"""A lake on disk and a small table of rides, without an engine."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from rivermark.lake import table_rows
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.model.table import Daily, Table

NOON = datetime(2024, 3, 1, 12, tzinfo=UTC)

RIDES = Table(
    name="test/rides",
    schema=StructType([StructField("id", LongType()), StructField("at", TimestampType())]),
    description="Rides.",
    event_time="at",
    days=Daily("at", date(2024, 1, 1)),
)
ARROW = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC"))])

Foreign = Callable[[], None]


@pytest.fixture(params=["small files", "large files"])
def reading(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Data files read one after the other, and by Arrow's scan."""
    if request.param == "large files":
        monkeypatch.setattr(table_rows, "SMALL", -1)


def rides(*ids: int, at: datetime = NOON) -> pa.Table:
    """Rides of these numbers, all at one time."""
    return pa.Table.from_pylist([{"id": i, "at": at} for i in ids], ARROW)


def ids(lake: Lake, version: int | None = None) -> list[int]:
    """The numbers of the rides that the table holds, ascending."""
    table: pa.Table = DeltaTable(lake.path(RIDES), version=version).to_pyarrow_table()
    return sorted(table["id"].to_pylist())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(str(tmp_path / "lake"))
    create_table(found, RIDES)
    return found


@pytest.fixture
def foreign(lake: Lake) -> Foreign:
    """A commit by somebody else: no row of ours, and metadata that is not ours."""

    def commit() -> None:
        told = CommitProperties(custom_metadata={"userMetadata": json.dumps({"by": "a person"})})
        write_deltalake(lake.path(RIDES), rides(-1), mode="append", commit_properties=told)

    return commit
