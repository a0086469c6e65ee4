"""The generated sensors' readings on their way, with losses and repeats, and their controls."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from assets.readings.ingest import SENSOR_READINGS, SMOKE_LEVELS, THRESHOLDS
from simulator.disorder import Disorder
from simulator.feeds import Feed
from simulator.readings.controls import smoke_levels, thresholds
from simulator.readings.world import SensorWorld

RADIO: Final = Disorder(
    delay=timedelta(seconds=2),
    late=0.005,
    late_by=timedelta(seconds=10),
    loss=0.02,
    duplicates=0.01,
    resend_after=timedelta(seconds=1),
)
"""Losses and repeats about as those of the library's nodes, and some readings that come late."""


def sensor_feeds(
    world: SensorWorld,
    beginning: datetime,
    length: timedelta | None = None,
    *,
    controls: bool = False,
) -> list[Feed]:
    """The readings from `beginning` on; with `controls` thresholds and smoke levels, in time."""
    readings = Feed(SENSOR_READINGS, world.readings(beginning, length), RADIO)
    if not controls:
        return [readings]
    return [
        readings,
        Feed(THRESHOLDS, thresholds(beginning, length)),
        Feed(SMOKE_LEVELS, smoke_levels(beginning, length)),
    ]
