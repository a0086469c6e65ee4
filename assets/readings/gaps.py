"""Where recorded series have holes: each gap once, with how many readings are missing in it.

A hole of many days has no reading on most of them, and a file that comes later may fill its middle.
So gaps are computed by the year: whatever comes for a year, all its gaps are computed again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from assets.readings.hourly import sensor_of
from assets.readings.ingest import ARCHIVE, TEMPERATURES
from rivermark import expect

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
            (F.round(F.try_divide("step", "interval")) - 1).cast("long").alias("missing"),
        )
    )


GAPS: Final = ARCHIVE.stream(
    "readings/gaps",
    (
        "sensor_id string COMMENT 'The sensor: what its file is named after.', "
        "year date COMMENT 'First day of the year (UTC) in which the gap ends.', "
        "last_before timestamp COMMENT 'Last reading before the gap (UTC).', "
        "first_after timestamp COMMENT 'First reading after the gap (UTC).', "
        "interval_seconds double COMMENT 'Median step between readings of the sensor.', "
        "missing long COMMENT 'How many readings are missing, at that step.'"
    ),
    reads=TEMPERATURES,
    build=find_gaps,
    description=("Each gap in the recorded series: between which readings, how many are missing."),
    keys=("sensor_id", "first_after"),
    event_time="first_after",
    days="year",
    kind="refresh",
    touches=lambda: year_of("event_time"),
    margin=timedelta(days=366),
    expect=[
        expect.unique(("sensor_id", "first_after")),
        expect.pair_ordered("last_before", "first_after", strictly=True),
        expect.between("missing", 1),
        expect.between("missing", None, 24, severity="info"),
    ],
)
