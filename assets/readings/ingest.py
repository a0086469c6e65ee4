"""Readings come in: a live stream of JSON lines, and recorded series as published.

Where the environment names Kafka brokers as READINGS_KAFKA, the live stream comes from a topic.
"""

from __future__ import annotations

import os
from datetime import date, timedelta
from decimal import Decimal
from typing import Final

from assets.readings.controls import SMOKE_LEVEL, THRESHOLD
from assets.readings.expected import usual_in_the_archive
from assets.readings.library_messages import LIBRARY_COLUMNS, LIBRARY_MESSAGE
from assets.readings.recorded import RECORDED_TEMPERATURE
from assets.readings.room import OCCUPANCY_COLUMNS, ROOM_READING
from assets.readings.sensors import SENSOR_READING
from rivermark import Domain, Suite, expect
from rivermark.sources import FileSource, KafkaSource, Source

OWNERS: Final = ("team:readings",)
FIRST_DAY: Final = date(2013, 1, 1)

READINGS: Final = Domain("readings", owners=OWNERS, first_day=FIRST_DAY)
ALERTS: Final = Domain("reading_alerts", owners=OWNERS, first_day=FIRST_DAY)
ARCHIVE: Final = Domain("readings_archive", owners=OWNERS, first_day=FIRST_DAY)
LIBRARY_ARCHIVE: Final = Domain("readings_archive", owners=OWNERS, first_day=date(2006, 11, 1))

LATENESS: Final = timedelta(seconds=5)
"""How far a reading may lag behind the newest one, as in the book's first pipeline."""

COLDEST: Final = -60
HOTTEST: Final = 250
"""Degrees Fahrenheit beyond which no sensor here has been; the machine's reached 108."""

BROKERS: Final = "READINGS_KAFKA"
"""The variable of the environment that names the brokers of the topic, where there is one."""
HAVE_BROKERS: Final = bool(os.environ.get(BROKERS))


def sensors() -> Source:
    """The topic of readings, or the files of a folder."""
    if HAVE_BROKERS:
        return KafkaSource(brokers=f"${BROKERS}", topics="readings.sensors")
    return FileSource(folder="readings/sensors", pattern="*.json,*.json.gz")


SENSOR_READINGS: Final = READINGS.ingest(
    "readings/sensor_readings",
    source=sensors(),
    contract=SENSOR_READING,
    lateness=LATENESS,
    description="Temperatures of many sensors as they came, repeats among them.",
    days="event_time",
    expect=[
        expect.between("sequence", 0),
        expect.between("temperature", Decimal("-459.67")),
        expect.between("temperature", COLDEST, HOTTEST, severity="warning"),
        expect.matches_regex("sensor_id", ".+"),
    ],
)

THRESHOLDS: Final = ALERTS.ingest(
    "readings/thresholds",
    source=FileSource(folder="readings/thresholds", pattern="*.json,*.json.gz"),
    contract=THRESHOLD,
    lateness=LATENESS,
    description="From how many degrees on a change is a jump, told again and again.",
    days="event_time",
    expect=[
        expect.between("degrees", 0),
        expect.between("version", 0),
    ],
)

SMOKE_LEVELS: Final = ALERTS.ingest(
    "readings/smoke_levels",
    source=FileSource(folder="readings/smoke_levels", pattern="*.json,*.json.gz"),
    contract=SMOKE_LEVEL,
    lateness=LATENESS,
    description="Whether there is much smoke, told each second.",
    days="event_time",
    expect=[
        expect.in_set("level", ("High", "Low"), severity="warning"),
    ],
)

TEMPERATURES: Final = ARCHIVE.ingest(
    "readings/temperatures",
    source=FileSource(folder="readings/temperatures", pattern="*.csv,*.csv.gz", format="csv"),
    contract=RECORDED_TEMPERATURE,
    lateness=None,
    description="Recorded temperature series, one file a sensor, whose name is the sensor's.",
    days="event_time",
    expect=[
        expect.between("temperature", COLDEST, HOTTEST, severity="warning"),
        usual_in_the_archive("event_time"),
    ],
)

LIBRARY: Final = LIBRARY_ARCHIVE.ingest(
    "readings/library",
    source=FileSource(
        folder="readings/library",
        pattern="*.txt,*.txt.gz",
        format="csv",
        columns=LIBRARY_COLUMNS,
        delimiter=" ",
        # One file in three marks thousands with the byte A0, which UTF-8 does not have.
        encoding="ISO-8859-1",
    ),
    contract=LIBRARY_MESSAGE,
    lateness=None,
    description="Messages of the sensor nodes in a library, repeats among them.",
    days="event_time",
    expect=[
        expect.between("node", 1),
        expect.between("sequence", 0),
    ],
)


ROOM_SUITE: Final = Suite(
    expectations=(
        expect.between("temperature", -10, 50, severity="warning"),
        expect.between("humidity", 0, 100, allow_null_share=0.01),
        expect.between("light", 0, allow_null_share=0.01),
        expect.between("co2", 0, allow_null_share=0.01),
        expect.between("occupancy", 0, 1, allow_null_share=0.01),
    ),
    may_be_empty=True,
)

OCCUPANCY: Final = ARCHIVE.ingest(
    "readings/occupancy",
    source=FileSource(
        folder="readings/occupancy",
        pattern="*.txt,*.txt.gz",
        format="csv",
        # Their header names seven columns, their rows have eight: the header line is quarantined.
        columns=OCCUPANCY_COLUMNS,
    ),
    contract=ROOM_READING,
    lateness=None,
    description="Climate of an office room, about once a minute.",
    days="event_time",
    suite=ROOM_SUITE,
)

OCCUPANCY_RESAVED: Final = ARCHIVE.ingest(
    "readings/occupancy_resaved",
    source=FileSource(folder="readings/occupancy_resaved", pattern="*.csv,*.csv.gz", format="csv"),
    contract=ROOM_READING,
    lateness=None,
    description="Climate of an office room after a spreadsheet saved it: dates to the minute.",
    days="event_time",
    suite=ROOM_SUITE,
)
