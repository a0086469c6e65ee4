"""A table of fares, rows of it, and what a sink of it is opened for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyspark.sql.types import BooleanType, DoubleType, LongType, StructField, StructType
from pyspark.sql.types import TimestampType as Timestamp

from rivermark.lake.lake import Lake
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


COMMIT = (
    "rivermark.lake.append.table_files.write_data_file",
    "rivermark.lake.append.delta_commit.put_checksum",
    "os.link",
)
"""The steps of an append to a table of the lake."""


def of_json(lines: Iterable[str | bytes]) -> pa.Table:
    """Fares that were written as JSON objects."""
    rows = [json.loads(line) for line in lines]
    return rows_of(FARES, [row | {"at": datetime.fromisoformat(row["at"])} for row in rows])


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
