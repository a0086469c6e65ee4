"""Lowest and highest temperature per sensor and window: tumbling, shifted, sliding or session."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from assets.readings.averages import each_reading_once
from assets.readings.ingest import FIRST_DAY, GROUP, LATENESS, OWNERS, SENSOR_READINGS
from assets.readings.sensors import TEMPERATURE
from assets.readings.suites import MINUTE_EXTREMES_SUITE
from rivermark.model.stream import Stream
from rivermark.model.table import Daily, Table
from rivermark.operators.windows import EventWindow, Tumbling, per_window


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
    window = Tumbling(timedelta(minutes=1))
    return sensor_readings.transform(each_reading_once).transform(extremes_per_sensor, window)


EXTREMES: Final = "Lowest and highest temperature (F) and readings per sensor and minute."

MINUTE_EXTREMES: Final = Stream(
    name="readings/minute_extremes",
    reads=(SENSOR_READINGS,),
    build=extremes_of_each_minute,
    writes=Table(
        name="readings/minute_extremes",
        schema=StructType(
            [
                StructField("sensor_id", StringType(), True),
                StructField("window_start", TimestampType(), True),
                StructField("window_end", TimestampType(), True),
                StructField("minimum", TEMPERATURE, True),
                StructField("maximum", TEMPERATURE, True),
                StructField("readings", LongType(), True),
            ]
        ),
        description=EXTREMES,
        event_time="window_end",
        keys=("sensor_id", "window_end"),
        days=Daily(column="window_start", start=FIRST_DAY),
    ),
    description=EXTREMES,
    group=GROUP,
    lateness=LATENESS,
    margin=LATENESS,
    suite=MINUTE_EXTREMES_SUITE,
    owners=OWNERS,
)
