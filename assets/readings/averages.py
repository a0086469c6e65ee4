"""Average temperature per sensor and short window, in degrees Celsius."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.readings.expected import ORDERED_WINDOW
from assets.readings.ingest import LATENESS, READINGS, SENSOR_READINGS
from assets.readings.sensors import SENSOR_READING, TEMPERATURE
from rivermark import expect
from rivermark.operators import EventWindow, TumblingWindow, first_of_each, per_window
from rivermark.quality import no_overlap


def each_reading_once(sensor_readings: DataFrame) -> DataFrame:
    """Readings without repeats, which share sensor and sequence number with their original."""
    repeats = first_of_each(*SENSOR_READING.keys, event_time="event_time", within=LATENESS)
    return sensor_readings.transform(repeats)


def average_celsius(fahrenheit: str) -> Column:
    """The average of a column of Fahrenheit decimals in Celsius, converted once, rounded once."""
    count = F.count(fahrenheit)
    # Spark divides decimals to 18 places here, so the cast is the only rounding that counts.
    return ((F.sum(fahrenheit) - 32 * count) * 5 / (9 * count)).cast(TEMPERATURE)


def average_per_sensor(readings: DataFrame, window: EventWindow) -> DataFrame:
    """Average (C) and number of readings per sensor and window; silent sensors have no row."""
    return per_window(
        readings,
        window,
        "event_time",
        "sensor_id",
        celsius=average_celsius("temperature"),
        readings=F.count("*"),
    )


def averages_of_five_seconds(sensor_readings: DataFrame) -> DataFrame:
    """Averages of each reading once, per sensor and five seconds."""
    window = TumblingWindow(timedelta(seconds=5))
    return sensor_readings.transform(each_reading_once).transform(average_per_sensor, window)


AVERAGES_5S: Final = READINGS.stream(
    "readings/averages_5s",
    (
        "sensor_id string, window_start timestamp, window_end timestamp, "
        f"celsius {TEMPERATURE} COMMENT 'Average temperature (degrees Celsius).', "
        "readings long COMMENT 'How many readings, repeats left out.'"
    ),
    reads=SENSOR_READINGS,
    build=averages_of_five_seconds,
    description=(
        "Average temperature (C) and readings per sensor and five seconds, repeats left out."
    ),
    keys=("sensor_id", "window_end"),
    lateness=LATENESS,
    margin=LATENESS,
    expect=[
        expect.unique(("sensor_id", "window_end")),
        ORDERED_WINDOW,
        no_overlap("sensor_id"),
        expect.between("celsius", -60, 120, severity="warning"),
        expect.between("readings", 1),
    ],
    may_be_empty=False,
)
