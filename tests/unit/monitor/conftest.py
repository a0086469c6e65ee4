"""A small lake written without an engine: rides that landed, and what the door said of them."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from rivermark import FileSource
from rivermark.lake.schema import create_table
from rivermark.model.contract import Contract, Field
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily, Table
from rivermark.settings import Settings

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)

Put = Callable[..., None]

HOURLY = Table(
    name="taxi/hourly",
    schema=StructType(
        [
            StructField("driver_id", LongType()),
            StructField("window_end", TimestampType()),
            StructField("tips", LongType()),
        ]
    ),
    description="Tips an hour.",
    event_time="window_end",
    keys=("driver_id", "window_end"),
    days=Daily(column="window_end", start=date(2026, 3, 1)),
)


@pytest.fixture
def rides() -> Ingest:
    return Ingest(
        name="taxi/rides",
        source=FileSource(folder="rides"),
        contract=Contract(
            fields=(
                Field("ride_id", LongType(), required=True),
                Field("at", TimestampType(), required=True),
                Field("driver", StringType()),
            ),
            event_time="at",
            keys=("ride_id",),
        ),
        lateness=timedelta(minutes=1),
        description="Rides.",
        group="taxi",
        late_below=0.1,
        quarantine_below=0.2,
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def put(settings: Settings) -> Put:
    def append(table: Table, *rows: dict[str, Any]) -> None:
        lake = settings.lake()
        create_table(lake, table)
        schema = DeltaTable(lake.path(table)).to_pyarrow_dataset().schema
        if rows:
            write_deltalake(
                lake.path(table), pa.Table.from_pylist(list(rows), schema), mode="append"
            )

    return append
