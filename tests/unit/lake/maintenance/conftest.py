"""A table with many small commits, its upkeep, and upkeep when the promise is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from deltalake import write_deltalake

from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.maintenance.maintain import MaintenanceResult, maintain
from rivermark.lake.maintenance.reader_positions import Reader
from rivermark.lake.retention import apply_retention
from rivermark.model.sink import Origin
from tests.unit.lake.conftest import RIDES, rides

NEWEST = 1000
SECOND = timedelta(seconds=1)
SINCE = datetime(2024, 3, 1, tzinfo=UTC)
Upkeep = Callable[..., MaintenanceResult]


def writer(lake: Lake, stream: str = "test/rides") -> TableWriter:
    return TableWriter(lake, RIDES, Origin(stream, 0, SINCE, "run"))


def write(lake: Lake, first: int, last: int) -> None:
    """Batches of one row each, from `first` to `last`, as the stream writes them."""
    ours = writer(lake)
    for batch in range(first, last + 1):
        ours.append_once(rides(batch), batch, metadata={"watermark": f"of {batch}"})


def keep(lake: Lake, *readers: Reader, dry_run: bool = False) -> MaintenanceResult:
    """Upkeep that promises a week."""
    now = datetime.now(UTC)
    return maintain(lake, RIDES, now=now, run_id="u", readers=readers, dry_run=dry_run)


def keep_later(lake: Lake, *readers: Reader) -> MaintenanceResult:
    """Upkeep when all that was committed so far is older than the promise, and one batch is not.

    The promise is a second long and waited for: delta-rs asks the clock itself.
    """
    hasty = Lake(lake.root, retention=SECOND)
    apply_retention(hasty, RIDES)
    time.sleep(1.3)
    now = datetime.now(UTC)
    write_deltalake(lake.path(RIDES), rides(NEWEST), mode="append")
    return maintain(hasty, RIDES, now=now, run_id="u", readers=readers)


@pytest.fixture
def upkeep(lake: Lake) -> Upkeep:
    return partial(keep, lake)


@pytest.fixture
def later(lake: Lake) -> Upkeep:
    return partial(keep_later, lake)
