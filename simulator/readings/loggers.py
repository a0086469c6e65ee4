"""Files of loggers, generated in the layouts of the published ones: a library and an office room.

The library's nodes write decimal commas and lose messages. A spreadsheet saved the room's file a
second time: dates are an American's, and to the minute.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from assets.readings.ingest import LIBRARY, OCCUPANCY, OCCUPANCY_RESAVED
from assets.readings.room import OCCUPANCY_COLUMNS
from rivermark.cli.demo_scene import LandedInput
from simulator.demo_day import DemoDay
from simulator.landing.once import land_parts_once

NODES: Final = 19
ROUNDS: Final = 180
"""Messages of each node, one a minute."""
LOST: Final = 0.02
TWICE: Final = 0.01
IN_THE_ROOM: Final = 12 * 60
"""Readings of the room, one a minute."""
RESAVED_HEADER: Final = (
    "Time,Temperature [Celsius],Humidity [%],Light [Lux],CO2 [PPM],Occupancy [Binary]"
)


def land_loggers(landing: Path) -> Iterator[LandedInput]:
    """Land three hours of the library, and half a day of the room as logged and as resaved."""
    files = {
        LIBRARY.source.name: ("generated library of sensor nodes: messages lost or twice", ".txt"),
        OCCUPANCY.source.name: ("generated climate of an office room", ".txt"),
        OCCUPANCY_RESAVED.source.name: ("the same after a spreadsheet saved it", ".csv"),
    }
    of_day = DemoDay.of([landing / folder for folder in files], "generated", datetime.now(UTC))
    room = [*room_readings(of_day.noon)]
    contents = (library_lines(of_day.noon), logged(room), resaved(room))
    for (folder, (what, ending)), lines in zip(files.items(), contents, strict=True):
        done = land_parts_once(landing / folder, of_day.stem, [lines], ending)
        yield LandedInput(what, done.files, done.rows, done.new_files)


def library_lines(beginning: datetime) -> Iterator[str]:
    """Messages as the base station wrote them down: milliseconds since 1970, decimal commas."""
    dice = random.Random("library")  # noqa: S311 - no secret, the same messages each time
    for sequence in range(ROUNDS):
        for node in range(1, NODES + 1):
            at = beginning + timedelta(minutes=sequence, milliseconds=node * 150)
            warm = 21 + node / 10 + math.sin(sequence / 60) + dice.random() / 5
            values = (warm - 1, 2.8, 50 - node / 2, warm)
            numbers = [f"{value:.2f}".replace(".", ",") for value in values]
            inner, volts, humidity, outer = numbers
            message = f"{node} {sequence} {inner} {volts} {humidity} {outer} {node * 3} {node * 2}"
            fate = dice.random()
            millis = int(at.timestamp() * 1000)
            if fate >= LOST:
                yield f"{millis} {message}"
            if fate > 1 - TWICE:
                yield f"{millis + 400} {message}"


def room_readings(beginning: datetime) -> Iterator[tuple[datetime, tuple[float, ...]]]:
    """When it was read, and temperature (C), humidity, light, CO2, humidity ratio, occupancy."""
    dice = random.Random("room")  # noqa: S311 - no secret, the same readings each time
    for minute in range(IN_THE_ROOM):
        present = int(minute % 240 > 60)
        warm = 20.5 + 2 * present + math.sin(minute / 90) + dice.random() / 10
        light, carbon = 430.0 * present, 450.0 + 350 * present + dice.random() * 20
        # Stamps end in :00 or :59, as the logger's did.
        at = beginning + timedelta(minutes=minute, seconds=-(minute % 3 == 1))
        values = (warm, 26 + dice.random(), light, carbon, 0.0047, present)
        yield at, tuple(round(value, 4) for value in values)


def logged(room: Sequence[tuple[datetime, tuple[float, ...]]]) -> Iterator[str]:
    """The logger's lines: their header names no number, which each row begins with."""
    yield ",".join(f'"{name}"' for name in OCCUPANCY_COLUMNS[1:])
    for number, (at, values) in enumerate(room, 1):
        yield ",".join([f'"{number}"', f'"{at:%Y-%m-%d %H:%M:%S}"', *map(str, values)])


def resaved(room: Sequence[tuple[datetime, tuple[float, ...]]]) -> Iterator[str]:
    """The spreadsheet's lines: month before day, no seconds, no humidity ratio."""
    yield RESAVED_HEADER
    for at, (*climate, _, present) in room:
        day = f"{at.month}/{at.day}/{at:%y} {at.hour}:{at:%M}"
        yield ",".join([day, *map(str, climate), str(int(present))])
