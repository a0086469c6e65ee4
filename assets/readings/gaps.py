"""Where recorded series have holes: each gap once, with how many readings are missing in it.

A hole of many days has no reading on most of them, and a file that comes later may fill its middle.
So gaps are computed by the year: whatever comes for a year, its gaps are looked for anew.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    DateType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from assets.readings.hourly import sensor_of
from assets.readings.ingest import ARCHIVE, OWNERS, TEMPERATURES
from assets.readings.suites import GAPS_SUITE
from rivermark.model.stream import Stream
from rivermark.model.table import Daily, Table

TOLERANCE: Final = 1.5
"""A step of so many usual intervals is a gap; shorter ones are the jitter of a clock."""


def year_of(time: str) -> Column:
    """New Year's Day (UTC) of a time."""
    return F.trunc(F.col(time).cast("date"), "year")


def find_gaps(temperatures: DataFrame) -> DataFrame:
    """Per sensor each step that is longer than usual; what is usual is the median step.

    A gap lies between two readings and belongs to the year in which it ends. Before the first
    reading of a sensor and after its last there is no gap.
    """
    sensor = Window.partitionBy("sensor_id")
    step = F.unix_millis("first_after") - F.unix_millis("last_before")
    interval = F.median("step").over(sensor)
    return (
        temperatures.select(
            sensor_of(F.col("_file")).alias("sensor_id"),
            F.col("event_time").alias("first_after"),
        )
        .withColumn("last_before", F.lag("first_after").over(sensor.orderBy("first_after")))
        .withColumn("step", step)
        .where("step > 0")
        .withColumn("interval", interval)
        .where(F.col("step") > TOLERANCE * F.col("interval"))
        .select(
            "sensor_id",
            year_of("first_after").alias("year"),
            "last_before",
            "first_after",
            (F.col("interval") / 1000).alias("interval_seconds"),
            (F.round(F.col("step") / F.col("interval")) - 1).cast("long").alias("missing"),
        )
    )


GAPS_SHOWN: Final = "Each gap in the recorded series: between which readings, how many are missing."

GAPS: Final = Stream(
    name="readings/gaps",
    reads=(TEMPERATURES,),
    build=find_gaps,
    writes=Table(
        name="readings/gaps",
        schema=StructType(
            [
                StructField("sensor_id", StringType(), True),
                StructField("year", DateType(), True),
                StructField("last_before", TimestampType(), True),
                StructField("first_after", TimestampType(), True),
                StructField("interval_seconds", DoubleType(), True),
                StructField("missing", LongType(), True),
            ]
        ),
        description=GAPS_SHOWN,
        event_time="first_after",
        keys=("sensor_id", "first_after"),
        days=Daily(column="year", start=date(2013, 1, 1)),
    ),
    description=GAPS_SHOWN,
    group=ARCHIVE,
    kind="refresh",
    touches=lambda: year_of("event_time"),
    margin=timedelta(days=366),
    suite=GAPS_SUITE,
    owners=OWNERS,
)
