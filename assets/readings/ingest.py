"""Readings come in: a live stream of JSON lines, and recorded series as published."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta
from typing import Final

from assets.readings.controls import SMOKE_LEVEL, THRESHOLD
from assets.readings.library_messages import LIBRARY_COLUMNS, LIBRARY_MESSAGE
from assets.readings.recorded import RECORDED_TEMPERATURE
from assets.readings.room import OCCUPANCY_COLUMNS, ROOM_READING
from assets.readings.sensors import SENSOR_READING
from assets.readings.suites import (
    LIBRARY_SUITE,
    ROOM_SUITE,
    SENSOR_READINGS_SUITE,
    SMOKE_LEVELS_SUITE,
    TEMPERATURES_SUITE,
    THRESHOLDS_SUITE,
)
from rivermark.model.file_source import FileSource
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily

GROUP: Final = "readings"
ARCHIVE: Final = "readings_archive"
ALERTS: Final = "reading_alerts"
OWNERS: Final = ("team:readings",)

LATENESS: Final = timedelta(seconds=5)
"""How far a reading may lag behind the newest one, as in the book's first pipeline."""

FIRST_DAY: Final = date(2013, 1, 1)
FIRST_LIBRARY_DAY: Final = date(2006, 11, 1)

SENSOR_READINGS: Final = Ingest(
    name="readings/sensor_readings",
    source=FileSource(folder="readings/sensors", pattern="*.json,*.json.gz"),
    contract=SENSOR_READING,
    lateness=LATENESS,
    description="Temperatures of many sensors as they came, repeats among them.",
    group=GROUP,
    days=Daily(column="event_time", start=FIRST_DAY),
    owners=OWNERS,
    suite=SENSOR_READINGS_SUITE,
)

THRESHOLDS: Final = Ingest(
    name="readings/thresholds",
    source=FileSource(folder="readings/thresholds", pattern="*.json,*.json.gz"),
    contract=THRESHOLD,
    lateness=LATENESS,
    description="From how many degrees on a change is a jump, told again and again.",
    group=ALERTS,
    days=Daily(column="event_time", start=FIRST_DAY),
    owners=OWNERS,
    suite=THRESHOLDS_SUITE,
)

SMOKE_LEVELS: Final = Ingest(
    name="readings/smoke_levels",
    source=FileSource(folder="readings/smoke_levels", pattern="*.json,*.json.gz"),
    contract=SMOKE_LEVEL,
    lateness=LATENESS,
    description="Whether there is much smoke, told each second.",
    group=ALERTS,
    days=Daily(column="event_time", start=FIRST_DAY),
    owners=OWNERS,
    suite=SMOKE_LEVELS_SUITE,
)

TEMPERATURES: Final = Ingest(
    name="readings/temperatures",
    source=FileSource(folder="readings/temperatures", pattern="*.csv,*.csv.gz", format="csv"),
    contract=RECORDED_TEMPERATURE,
    lateness=None,
    description="Recorded temperature series, one file a sensor, whose name is the sensor's.",
    group=ARCHIVE,
    days=Daily(column="event_time", start=FIRST_DAY),
    owners=OWNERS,
    suite=TEMPERATURES_SUITE,
)

LIBRARY: Final = Ingest(
    name="readings/library",
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
    group=ARCHIVE,
    days=Daily(column="event_time", start=FIRST_LIBRARY_DAY),
    owners=OWNERS,
    suite=LIBRARY_SUITE,
)

OCCUPANCY: Final = Ingest(
    name="readings/occupancy",
    source=FileSource(
        folder="readings/occupancy",
        pattern="*.txt,*.txt.gz",
        format="csv",
        # Their header names seven columns, their rows have eight: the header line is set aside.
        columns=OCCUPANCY_COLUMNS,
    ),
    contract=ROOM_READING,
    lateness=None,
    description="Climate of an office room, about once a minute.",
    group=ARCHIVE,
    days=Daily(column="event_time", start=FIRST_DAY),
    owners=OWNERS,
    suite=ROOM_SUITE,
)

OCCUPANCY_RESAVED: Final = Ingest(
    name="readings/occupancy_resaved",
    source=FileSource(folder="readings/occupancy_resaved", pattern="*.csv,*.csv.gz", format="csv"),
    contract=ROOM_READING,
    lateness=None,
    description="Climate of an office room after a spreadsheet saved it: dates to the minute.",
    group=ARCHIVE,
    days=Daily(column="event_time", start=FIRST_DAY),
    owners=OWNERS,
    suite=replace(ROOM_SUITE, name="readings/occupancy_resaved"),
)
