"""Rides that landed, and what admission said of them; nothing here starts an engine."""

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest

from rivermark.model.stream import Ingest
from rivermark.model.table import Daily, Table
from tests.platform.small_topology import RIDES

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
HOURLY = Table(
    name="taxi/hourly",
    schema="driver_id long, window_end timestamp, tips long",
    description="Tips an hour.",
    event_time="window_end",
    keys=("driver_id", "window_end"),
    days=Daily(column="window_end", start=date(2026, 3, 1)),
)


@pytest.fixture
def rides() -> Ingest:
    return replace(RIDES, late_below=0.1, quarantine_below=0.2)
