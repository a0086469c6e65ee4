"""Generated worlds of the domains whose feeds drip: readings and alerts, visitors, accounts."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from assets.topology import TOPOLOGY
from rivermark import Ingest
from simulator.feeds import drip_feeds
from simulator.fraud.commands import fraud_feeds
from simulator.fraud.world import FraudWorld
from simulator.landing.json_lines import json_line
from simulator.readings.feeds import sensor_feeds
from simulator.readings.world import SensorWorld
from simulator.web.commands import web_feeds
from simulator.web.world import WebWorld

LENGTH: Final = timedelta(minutes=2)
"""Of readings: the thresholds change in the middle of it."""
BUSY_LENGTH: Final = timedelta(hours=1)
"""Of page views, logins and payments."""
LAST_ROWS: Final[Mapping[str, Mapping[str, str | int]]] = {
    "readings/sensor_readings": {"sensor_id": "last", "temperature": 70, "sequence": 0},
    "readings/thresholds": {"sensor_id": "last", "degrees": 9, "version": 0},
    "readings/smoke_levels": {"level": "Low"},
    "web/page_views": {
        "user_id": "last", "number": 1, "page": "/", "action": "view", "device": "phone",
    },
    "fraud/logins": {"account_id": "last", "number": 1, "succeeded": True, "country": "DE"},
    "fraud/payments": {"card_id": "last", "number": 1, "amount": 5, "merchant": "books"},
}  # fmt: skip


def land_worlds(root: Path, readings: datetime, busy: datetime, later: datetime) -> None:
    """Readings and busy feeds from those times on; `later` a last event of each closes the days."""
    every = timedelta(seconds=30)
    drip_feeds(root, sensor_feeds(SensorWorld(), readings, LENGTH, controls=True), every=every)
    feeds = web_feeds(WebWorld(users=30), busy, BUSY_LENGTH)
    feeds += fraud_feeds(FraudWorld(accounts=30), busy, BUSY_LENGTH)
    drip_feeds(root, feeds, every=timedelta(minutes=10))
    for name, row in LAST_ROWS.items():
        ingest = TOPOLOGY.named(name)
        assert isinstance(ingest, Ingest)
        folder = root / ingest.source.name
        # A file that is hours ahead of all before it is doubted until another one says the same.
        for number in (1, 2):
            last = json_line({**row, "event_time": later + number * timedelta(seconds=1)})
            (folder / f"zz-{number}.json").write_text(last + "\n")
