"""Recorded series resampled to hours."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from assets.readings.ingest import ARCHIVE, FIRST_DAY, OWNERS, TEMPERATURES
from assets.readings.recorded import RECORDED
from assets.readings.suites import HOURLY_SUITE
from rivermark.model.stream import Stream
from rivermark.model.table import Daily, Table
from rivermark.operators.windows import Tumbling, per_window

FILE_NAME: Final = r"([^/]+?)\.csv(?:\.gz)?$"


def sensor_of(file: Column) -> Column:
    """The sensor that a file of a recorded series is about: its name without folder and ending."""
    return F.regexp_extract(file, FILE_NAME, 1)


def resample_to_hours(temperatures: DataFrame) -> DataFrame:
    """Average, extremes (F) and number of readings per sensor and hour.

    Readings are not told apart by their time: where a logger set its clock back, an hour holds the
    readings of two.
    """
    count = F.count("temperature")
    return per_window(
        temperatures.withColumn("sensor_id", sensor_of(F.col("_file"))),
        Tumbling(timedelta(hours=1)),
        "event_time",
        "sensor_id",
        readings=count,
        average=(F.sum("temperature") / count).cast(RECORDED),
        minimum=F.min("temperature"),
        maximum=F.max("temperature"),
    )


HOURS: Final = "Average, lowest and highest temperature (F) per recorded sensor and hour."

HOURLY: Final = Stream(
    name="readings/hourly",
    reads=(TEMPERATURES,),
    build=resample_to_hours,
    writes=Table(
        name="readings/hourly",
        schema=StructType(
            [
                StructField("sensor_id", StringType(), True),
                StructField("window_start", TimestampType(), True),
                StructField("window_end", TimestampType(), True),
                StructField("readings", LongType(), True),
                StructField("average", RECORDED, True),
                StructField("minimum", RECORDED, True),
                StructField("maximum", RECORDED, True),
            ]
        ),
        description=HOURS,
        event_time="window_end",
        keys=("sensor_id", "window_end"),
        days=Daily(column="window_start", start=FIRST_DAY),
    ),
    description=HOURS,
    group=ARCHIVE,
    kind="refresh",
    suite=HOURLY_SUITE,
    owners=OWNERS,
)
