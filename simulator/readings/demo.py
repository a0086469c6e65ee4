"""The readings domain's part in the demo: recorded temperatures, and a generated sensor stream."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from assets.readings.ingest import SENSOR_READINGS, SMOKE_LEVELS, TEMPERATURES, THRESHOLDS
from assets.samples import SAMPLES
from rivermark.cli.demo_scene import LandedInput, Scene
from rivermark.testing.landing.once import copy_once, land_parts_once
from simulator.demo_day import DemoDay
from simulator.readings.feeds import sensor_feeds
from simulator.readings.world import SensorWorld

GENERATED: Final = (SENSOR_READINGS, SMOKE_LEVELS, THRESHOLDS)
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
    return [*_land_recorded(landing), *_land_generated(landing)]


def _land_recorded(landing: Path) -> Iterator[LandedInput]:
    for name, (what, rows) in RECORDED.items():
        new = copy_once(SAMPLES / "nab" / name, landing / TEMPERATURES.source.name)
        yield LandedInput(what, 1, rows, int(new))


def _land_generated(landing: Path) -> Iterator[LandedInput]:
    folders = [landing / ingest.source.name for ingest in GENERATED]
    of_day = DemoDay.of(folders, "generated", datetime.now(UTC))
    readings, *controls = sensor_feeds(SensorWorld(), of_day.noon, LENGTH, controls=True)
    for feed in (*controls, readings):
        lines = (feed.lines(parcel) for parcel in feed.parcels(FILE_SPAN))
        done = land_parts_once(landing / feed.ingest.source.name, of_day.stem, lines)
        what = f"generated {feed.ingest.name.partition('/')[2].replace('_', ' ')}"
        if feed is readings:
            what = "generated sensors: some readings late, lost or sent twice"
        yield LandedInput(what, done.files, done.rows, done.new_files)


SCENE: Final = Scene(land=land)
