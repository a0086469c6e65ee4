"""A lake that promises a second, a table with many small commits, and the wait for its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from rivermark.lake.create import create_table
from rivermark.lake.lake import Lake
from rivermark.lake.upkeep.reader import Reader
from rivermark.lake.upkeep.table_upkeep import Kept, look_after
from rivermark.lake.writer import Origin, TableWriter
from tests.unit.lake.conftest import RIDES, rides

SINCE = datetime(2024, 3, 1, tzinfo=UTC)
Upkeep = Callable[..., Kept]


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    found = Lake(str(tmp_path / "lake"), promise=timedelta(seconds=1))
    create_table(found, RIDES)
    return found


def writer(lake: Lake, stream: str = "test/rides") -> TableWriter:
    return TableWriter(lake, RIDES, Origin(stream, 0, SINCE, "run"))


def write(lake: Lake, first: int, last: int) -> None:
    """Batches of one row each, from `first` to `last`, as the stream writes them."""
    ours = writer(lake)
    for batch in range(first, last + 1):
        ours.append_once(rides(batch), batch, metadata={"watermark": f"of {batch}"})


def promise_over() -> None:
    time.sleep(1.3)


def ids(lake: Lake, version: int | None = None) -> list[int]:
    table: pa.Table = DeltaTable(lake.path(RIDES), version=version).to_pyarrow_table()
    return sorted(table["id"].to_pylist())


@pytest.fixture
def upkeep(lake: Lake) -> Upkeep:
    def run(*readers: Reader, dry_run: bool = False) -> Kept:
        now = datetime.now(UTC)
        return look_after(lake, RIDES, now=now, run_id="u", readers=readers, dry_run=dry_run)

    return run
