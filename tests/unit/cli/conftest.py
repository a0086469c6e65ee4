"""A small deployment and a home for it; nothing here starts an engine."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from rivermark.cli.main import app
from rivermark.model.stream import Stream
from rivermark.model.table import Daily, Table
from rivermark.model.topology import Topology
from rivermark.settings import Settings
from rivermark.sources import FileSource
from tests.oracles import shop as shop_oracle

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ONE = timedelta(hours=1)

ORDERS = replace(shop_oracle.ORDERS, source=FileSource(folder="shop/orders", pattern="*.json"))


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
TYPED = " y\n"
"""What the runner itself adds to standard output for an answer `y`."""


def drop(settings: Settings, name: str, content: str, *, age_seconds: float) -> Path:
    """Land a file of orders that was last written so long ago."""
    path = Path(settings.landing_root) / "shop" / "orders" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    os.utime(path, (time.time() - age_seconds,) * 2)
    return path


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
def shop(monkeypatch: pytest.MonkeyPatch) -> Topology:
    """The shop is the deployment that is installed."""
    entries = [Entry("default", SHOP)]
    monkeypatch.setattr("rivermark.cli.deployment.entry_points", lambda **_: entries)
    return SHOP


@pytest.fixture
def rivermark(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The console, with the test's own home."""
    monkeypatch.setenv("RIVERMARK_HOME", str(settings.home))
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments: str, **how: Any) -> Result:
        return CliRunner().invoke(app, list(arguments), **how)

    return run
