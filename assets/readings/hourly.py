"""Recorded series resampled to hours."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from assets.readings.expected import ORDERED_EXTREMES, ORDERED_WINDOW, usual_in_the_archive
from assets.readings.ingest import ARCHIVE, TEMPERATURES
from assets.readings.recorded import RECORDED
from rivermark import expect
from rivermark.operators import TumblingWindow, per_window
from rivermark.quality import no_overlap

FILE_NAME: Final = r"([^/]+?)\.csv(?:\.gz)?$"


def sensor_of(file: Column) -> Column:
    """The sensor that a file of a recorded series is about: its name without folder and ending."""
    return F.regexp_extract(file, FILE_NAME, 1)


def resample_to_hours(temperatures: DataFrame) -> DataFrame:
    """Average, extremes (F) and number of readings per sensor and hour.

    Readings of one time all count: where a logger set its clock back, an hour holds the readings of
    two.
    """
    count = F.count("temperature")
    return per_window(
        temperatures.withColumn("sensor_id", sensor_of(F.col("_file"))),
        TumblingWindow(timedelta(hours=1)),
        "event_time",
        "sensor_id",
        readings=count,
        average=(F.sum("temperature") / count).cast(RECORDED),
        minimum=F.min("temperature"),
        maximum=F.max("temperature"),
    )


HOURLY: Final = ARCHIVE.stream(
    "readings/hourly",
    (
        "sensor_id string COMMENT 'The sensor: what its file is named after.', "
        "window_start timestamp, window_end timestamp, "
        "readings long COMMENT 'How many readings.', "
        f"average {RECORDED} COMMENT 'Average temperature (degrees Fahrenheit).', "
        f"minimum {RECORDED} COMMENT 'Lowest temperature (degrees Fahrenheit).', "
        f"maximum {RECORDED} COMMENT 'Highest temperature (degrees Fahrenheit).'"
    ),
    reads=TEMPERATURES,
    build=resample_to_hours,
    description="Average, lowest and highest temperature (F) per recorded sensor and hour.",
    keys=("sensor_id", "window_end"),
    kind="refresh",
    expect=[
        expect.unique(("sensor_id", "window_end")),
        expect.matches_regex("sensor_id", ".+"),
        ORDERED_WINDOW,
        no_overlap("sensor_id"),
        ORDERED_EXTREMES,
        expect.pair_ordered("minimum", "average"),
        expect.pair_ordered("average", "maximum"),
        expect.between("readings", 1),
        usual_in_the_archive("window_start"),
    ],
    may_be_empty=False,
)
