"""Lowest and highest temperature per sensor and window: tumbling, shifted, sliding or session."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.readings.averages import each_reading_once
from assets.readings.expected import ORDERED_EXTREMES, ORDERED_WINDOW
from assets.readings.ingest import LATENESS, READINGS, SENSOR_READINGS
from assets.readings.sensors import TEMPERATURE
from rivermark import expect
from rivermark.operators import EventWindow, TumblingWindow, per_window
from rivermark.quality import no_overlap


def extremes_per_sensor(readings: DataFrame, window: EventWindow) -> DataFrame:
    """Minimum and maximum (F) and number of readings per sensor and window."""
    return per_window(
        readings,
        window,
        "event_time",
        "sensor_id",
        minimum=F.min("temperature"),
        maximum=F.max("temperature"),
        readings=F.count("*"),
    )


def extremes_of_each_minute(sensor_readings: DataFrame) -> DataFrame:
    """Extremes of each reading once, per sensor and minute."""
    window = TumblingWindow(timedelta(minutes=1))
    return sensor_readings.transform(each_reading_once).transform(extremes_per_sensor, window)


MINUTE_EXTREMES: Final = READINGS.stream(
    "readings/minute_extremes",
    (
        "sensor_id string, window_start timestamp, window_end timestamp, "
        f"minimum {TEMPERATURE} COMMENT 'Lowest temperature (degrees Fahrenheit).', "
        f"maximum {TEMPERATURE} COMMENT 'Highest temperature (degrees Fahrenheit).', "
        "readings long COMMENT 'How many readings, repeats left out.'"
    ),
    reads=SENSOR_READINGS,
    build=extremes_of_each_minute,
    description="Lowest and highest temperature (F) and readings per sensor and minute.",
    keys=("sensor_id", "window_end"),
    lateness=LATENESS,
    margin=LATENESS,
    expect=[
        expect.unique(("sensor_id", "window_end")),
        ORDERED_WINDOW,
        no_overlap("sensor_id"),
        ORDERED_EXTREMES,
        expect.between("readings", 1),
    ],
    may_be_empty=False,
)
