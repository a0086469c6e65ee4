"""The generated sensors' readings drip into a landing folder, with declared disorder."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from assets.readings.ingest import LATENESS, SENSOR_READINGS
from assets.readings.world import Reading, SensorWorld
from assets.taxi.world.disorder import Arrival, Disorder
from assets.taxi.world.held import keep_late_back
from rivermark.landing.folder import LandingFolder
from rivermark.landing.json_lines import json_line
from rivermark.landing.pace import Pace, Paced, Progress, land_at_pace
from rivermark.landing.parcels import Parcel, cut
from rivermark.landing.writer import Landed

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
    every: timedelta = timedelta(seconds=1),
    pace: Pace | None = None,
    stop: threading.Event | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> Paced:
    """Land the readings from `beginning` on below `landing`, one file per `every` of their time.

    They land at the given pace (default: as fast as possible) until `length` of their time has
    landed, `stop` is set or Ctrl-C is pressed. What lands in which file depends on world, disorder
    and `every` alone.
    """
    folder = LandingFolder(landing / SENSOR_READINGS.source.folder)

    def deliver(parcel: Parcel[Arrival[Reading]]) -> Landed:
        return folder.land(to_line(row.event) for row in parcel.rows if row.kind != "lost")

    arrivals = disorder.as_they_come(world.readings(beginning, length))
    return land_at_pace(
        keep_late_back(cut(arrivals, every), LATENESS),
        deliver,
        pace or Pace(),
        stop=stop,
        on_progress=on_progress,
    )


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
