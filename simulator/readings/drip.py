"""The generated sensors' readings drip into a landing folder, with declared disorder."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from assets.readings.ingest import SENSOR_READINGS, SMOKE_LEVELS, THRESHOLDS
from rivermark.testing.landing.json_lines import json_line
from rivermark.testing.landing.pace import Pace, Paced, Progress
from simulator.feeds import Feed, drip_feeds
from simulator.readings.controls import smoke_levels, smoke_line, threshold_line, thresholds
from simulator.readings.world import Reading, SensorWorld
from simulator.taxi.disorder import Disorder

RADIO: Final = Disorder(
    delay=timedelta(seconds=2),
    late=0.005,
    late_by=timedelta(seconds=10),
    loss=0.02,
    duplicates=0.01,
    resend_after=timedelta(seconds=1),
)
"""Losses and repeats about as those of the library's nodes, and some readings that come late."""


def drip_readings(
    landing: Path,
    world: SensorWorld,
    beginning: datetime,
    *,
    length: timedelta | None = None,
    disorder: Disorder = RADIO,
    controls: bool = False,
    every: timedelta = timedelta(seconds=1),
    pace: Pace | None = None,
    stop: threading.Event | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Paced:
    """Land the readings from `beginning` on below `landing`, one file per `every` of their time.

    They land at the given pace (default: as fast as possible) until `length` of their time has
    landed, `stop` is set or Ctrl-C is pressed. What lands in which file depends on world, disorder
    and `every` alone. With `controls` the thresholds and smoke levels of that time land as well.
    """
    feed = Feed(SENSOR_READINGS, world.readings(beginning, length), to_line, disorder)
    told = control_feeds(beginning, length) if controls else []
    return drip_feeds(
        landing, [feed, *told], every=every, pace=pace, stop=stop, on_progress=on_progress
    )


def control_feeds(beginning: datetime, length: timedelta | None = None) -> list[Feed]:
    """Thresholds and smoke levels on their way, all in time."""
    return [
        Feed(THRESHOLDS, thresholds(beginning, length), threshold_line),
        Feed(SMOKE_LEVELS, smoke_levels(beginning, length), smoke_line),
    ]


def to_line(reading: Reading) -> str:
    """The reading as the JSON line that lands."""
    return json_line(
        {
            "sensor_id": reading.sensor_id,
            "event_time": reading.event_time,
            "temperature": reading.temperature,
            "sequence": reading.sequence,
        }
    )
