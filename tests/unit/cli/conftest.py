"""A small deployment and a home for it; nothing here starts an engine."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql.types import LongType, StringType, TimestampType
from typer.testing import CliRunner, Result

from rivermark import FileSource
from rivermark.cli.main import app
from rivermark.lake.schema import create_table
from rivermark.model.contract import Contract, Field
from rivermark.model.stream import Ingest, Stream
from rivermark.model.table import Daily, Table
from rivermark.model.topology import Topology
from rivermark.settings import Settings

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ONE = timedelta(hours=1)

ORDERS = Ingest(
    name="shop/orders",
    source=FileSource(folder="shop/orders", pattern="*.json"),
    contract=Contract(
        fields=(
            Field("order_id", LongType(), required=True),
            Field("at", TimestampType(), required=True),
            Field("customer", StringType()),
        ),
        event_time="at",
        keys=("order_id",),
    ),
    lateness=timedelta(minutes=1),
    description="Orders.",
    group="shop",
    days=Daily(column="at", start=date(2026, 3, 1)),
    personal=("customer",),
)


def _table(name: str) -> Table:
    return Table(
        name=name,
        schema="window_end timestamp, orders long",
        description="Orders an hour.",
        event_time="window_end",
        keys=("window_end",),
        days=Daily(column="window_end", start=date(2026, 3, 1)),
    )


HOURLY = Stream(
    name="shop/hourly",
    reads=(ORDERS,),
    build=lambda orders: orders,
    writes=_table("shop/hourly"),
    description="Orders an hour.",
    group="shop",
)
BUSIEST = Stream(
    name="shop/busiest",
    reads=(HOURLY,),
    build=lambda hourly: hourly,
    writes=_table("shop/busiest"),
    description="The busiest hour.",
    group="reports",
)
SHOP = Topology([ORDERS, HOURLY, BUSIEST])

Run = Callable[..., Result]
Put = Callable[..., None]


class Entry:
    """An entry point that gives an object, or fails as a broken package does."""

    def __init__(self, name: str, found: object) -> None:
        self.name = name
        self.value = f"shop.{name}:FOUND"
        self._found = found

    def load(self) -> object:
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Topology:
    """The shop is the deployment that is installed."""
    entries = [Entry("default", SHOP)]
    monkeypatch.setattr("rivermark.cli.deployment.entry_points", lambda **_: entries)
    return SHOP


@pytest.fixture
def rivermark(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The console, with the test's own home."""
    monkeypatch.setenv("RIVERMARK_HOME", str(settings.home))

    def run(*arguments: str, **how: Any) -> Result:
        return CliRunner().invoke(app, list(arguments), **how)

    return run


@pytest.fixture
def put(settings: Settings) -> Put:
    """Append rows to a table of the lake."""

    def append(table: Table, *rows: dict[str, Any]) -> None:
        lake = settings.lake()
        create_table(lake, table)
        schema = DeltaTable(lake.path(table)).to_pyarrow_dataset().schema
        if rows:
            found = pa.Table.from_pylist(list(rows), schema)
            write_deltalake(lake.path(table), found, mode="append")

    return append
