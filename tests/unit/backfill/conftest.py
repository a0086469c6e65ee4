"""A table of tips with a personal column, and rows as they may differ."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import dataset

from rivermark import Daily, Stream, Table
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.lake import Lake
from rivermark.lake.replace import replace_days
from rivermark.lake.schema import create_table
from rivermark.settings import Settings

DAY: Final = date(2024, 3, 1)
NEXT_DAY: Final = date(2024, 3, 2)
TIPS: Final = Table(
    name="test/tips",
    schema="ride long, at timestamp, driver string, tip decimal(12,2)",
    description="Tips.",
    event_time="at",
    keys=("ride",),
    days=Daily(column="at", start=DAY),
    personal=("driver",),
)
Tip = tuple[int, str] | tuple[int, str, date] | tuple[int, str, date, str]


def tips(*given: Tip) -> pa.Table:
    """Rows (ride, tip, day = the first one, driver = Ann), at noon."""
    rows = []
    for ride, tip, *more in given:
        day = more[0] if more else DAY
        assert isinstance(day, date)
        at = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        driver = more[1] if len(more) > 1 else "Ann"
        rows.append({"ride": ride, "at": at, "driver": driver, "tip": Decimal(tip)})
    return pa.Table.from_pylist(rows, arrow_schema(TIPS.schema))


def as_dataset(rows: pa.Table) -> dataset.Dataset:
    return dataset.dataset(rows)


def unused(*_frames: Any) -> Any:
    raise AssertionError("an undo computes nothing")


STREAM: Final = Stream(
    name="test/tips",
    description="Tips.",
    reads=(Table(name="test/fares", schema=TIPS.schema, description="Fares.", event_time="at"),),
    build=unused,
    writes=TIPS,
    group="test",
    kind="refresh",
)


class World:
    """A lake with the table, and commits as reprocessings make them."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.lake: Lake = settings.lake()
        create_table(self.lake, TIPS)

    def append(self, *given: Tip) -> None:
        write_deltalake(self.lake.path(TIPS), tips(*given), mode="append")

    def replaced(
        self, name: str, before: int, days: Sequence[date], *given: Tip, because: str = ""
    ) -> None:
        bounds = [days[0].isoformat(), days[-1].isoformat()]
        metadata = {"reprocessing": name, "recompute": bounds, "before": before, "run": "r"}
        metadata |= {"because": because} if because else {}
        replace_days(self.lake, TIPS, tips(*given), days, metadata)


@pytest.fixture
def world(settings: Settings) -> World:
    return World(settings)
