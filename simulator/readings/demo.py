"""The readings domain's part in the demo: recorded temperatures, and a generated sensor stream."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from assets.readings.ingest import SENSOR_READINGS, SMOKE_LEVELS, TEMPERATURES, THRESHOLDS
from assets.samples import SAMPLES
from rivermark.cli.demo_scene import LandedInput, Scene
from simulator.demo_feeds import land_generated
from simulator.feeds import Feed
from simulator.landing.once import copy_once
from simulator.readings.feeds import sensor_feeds
from simulator.readings.loggers import land_loggers
from simulator.readings.world import SensorWorld

GENERATED: Final = {
    SENSOR_READINGS: "generated sensors: some readings late, lost or sent twice",
    SMOKE_LEVELS: "generated smoke levels",
    THRESHOLDS: "generated thresholds",
}
LENGTH: Final = timedelta(minutes=5)
FILE_SPAN: Final = timedelta(seconds=15)

RECORDED: Final = {
    "ambient_temperature_system_failure.csv.gz": ("NAB, temperature of an office", 7_267),
    "machine_temperature_system_failure.csv.gz": ("NAB, temperature of a machine", 22_695),
}


def land(landing: Path) -> list[LandedInput]:
    """Land the recorded series, and five minutes of twenty sensors with losses and repeats.

    Thresholds and smoke levels of those minutes land too: alerts are made of them.
    """
    generated = land_generated(landing, GENERATED, feeds, FILE_SPAN)
    return [*_land_recorded(landing), *generated, *land_loggers(landing)]


def _land_recorded(landing: Path) -> Iterator[LandedInput]:
    for name, (what, rows) in RECORDED.items():
        new = copy_once(SAMPLES / "nab" / name, landing / TEMPERATURES.source.name)
        yield LandedInput(what, 1, rows, int(new))


def feeds(beginning: datetime) -> list[Feed]:
    """Thresholds and smoke levels, then readings: alerts are made of all of them."""
    readings, *controls = sensor_feeds(SensorWorld(), beginning, LENGTH, controls=True)
    return [*controls, readings]


SCENE: Final = Scene(land=land)
