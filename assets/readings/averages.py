"""Average temperature per sensor and short window, in degrees Celsius."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from assets.readings.ingest import FIRST_DAY, GROUP, LATENESS, OWNERS, SENSOR_READINGS
from assets.readings.sensors import SENSOR_READING, TEMPERATURE
from assets.readings.suites import AVERAGES_5S_SUITE
from rivermark.model.stream import Stream
from rivermark.model.table import Daily, Table
from rivermark.operators.first_of_each import first_of_each
from rivermark.operators.windows import EventWindow, Tumbling, per_window


def each_reading_once(sensor_readings: DataFrame) -> DataFrame:
    """Readings without those that were sent twice, told by sensor and sequence number."""
    repeats = first_of_each(*SENSOR_READING.keys, event_time="event_time", within=LATENESS)
    return sensor_readings.transform(repeats)


def average_celsius(fahrenheit: str) -> Column:
    """The average of a column of Fahrenheit decimals, converted once, rounded once."""
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
    window = Tumbling(timedelta(seconds=5))
    return sensor_readings.transform(each_reading_once).transform(average_per_sensor, window)


AVERAGES: Final = (
    "Average temperature (C) and readings per sensor and five seconds, repeats left out."
)

AVERAGES_5S: Final = Stream(
    name="readings/averages_5s",
    reads=(SENSOR_READINGS,),
    build=averages_of_five_seconds,
    writes=Table(
        name="readings/averages_5s",
        schema=StructType(
            [
                StructField("sensor_id", StringType(), True),
                StructField("window_start", TimestampType(), True),
                StructField("window_end", TimestampType(), True),
                StructField("celsius", TEMPERATURE, True),
                StructField("readings", LongType(), True),
            ]
        ),
        description=AVERAGES,
        event_time="window_end",
        keys=("sensor_id", "window_end"),
        days=Daily(column="window_start", start=FIRST_DAY),
    ),
    description=AVERAGES,
    group=GROUP,
    lateness=LATENESS,
    margin=LATENESS,
    suite=AVERAGES_5S_SUITE,
    owners=OWNERS,
)
