"""Who earned the most tips in each hour: sums per driver first, then the best of them.

Hours are those of UTC, by the start of the ride; fares of rides outside the city count too. An hour
is final once the watermark has reached its end.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from assets.taxi.cleansing import CLEAN_FARES
from assets.taxi.event_suites import DRIVER_TIPS_SUITE, HOURLY_WINNERS_SUITE
from assets.taxi.fares import MONEY
from assets.taxi.ingest import FIRST_DAY, GROUP, OWNERS
from rivermark.model.stream import Stream
from rivermark.model.table import Daily, Table
from rivermark.operators.windows import Tumbling, per_window

HOUR: Final = Tumbling(timedelta(hours=1))


def tips_per_driver(clean_fares: DataFrame) -> DataFrame:
    """Tips and fares per driver and hour; a driver without any tip still has a row, with 0."""
    return clean_fares.transform(
        per_window,
        HOUR,
        "event_time",
        "driver_id",
        tips=F.sum("tip").cast(MONEY),
        fares=F.count("*"),
    )


def best_of_each_hour(driver_tips: DataFrame) -> DataFrame:
    """The driver with the most tips in each hour; of equals the lowest id."""
    best = F.max(F.struct("tips", (-F.col("driver_id")).alias("precedence")))
    return (
        driver_tips.groupBy("window_end")
        .agg(best.alias("best"), F.min("window_start").alias("window_start"))
        .select(
            "window_start",
            "window_end",
            (-F.col("best.precedence")).alias("driver_id"),
            F.col("best.tips").alias("tips"),
        )
    )


SUMS: Final = "Tips (USD) and fares per driver and hour of UTC."
WINNERS: Final = "The driver with the most tips (USD) in each hour of UTC."

DRIVER_TIPS: Final = Stream(
    name="taxi/driver_tips",
    reads=(CLEAN_FARES,),
    build=tips_per_driver,
    writes=Table(
        name="taxi/driver_tips",
        schema=StructType(
            [
                StructField("driver_id", LongType(), True),
                StructField("window_start", TimestampType(), True),
                StructField("window_end", TimestampType(), True),
                StructField("tips", MONEY, True),
                StructField("fares", LongType(), True),
            ]
        ),
        description=SUMS,
        event_time="window_end",
        keys=("driver_id", "window_end"),
        days=Daily(column="window_start", start=FIRST_DAY),
        personal=("driver_id",),
    ),
    description=SUMS,
    group=GROUP,
    suite=DRIVER_TIPS_SUITE,
    owners=OWNERS,
)

HOURLY_WINNERS: Final = Stream(
    name="taxi/hourly_winners",
    reads=(DRIVER_TIPS,),
    build=best_of_each_hour,
    writes=Table(
        name="taxi/hourly_winners",
        schema=StructType(
            [
                StructField("window_start", TimestampType(), True),
                StructField("window_end", TimestampType(), True),
                StructField("driver_id", LongType(), True),
                StructField("tips", MONEY, True),
            ]
        ),
        description=WINNERS,
        event_time="window_end",
        keys=("window_end",),
        days=Daily(column="window_start", start=FIRST_DAY),
        personal=("driver_id",),
    ),
    description=WINNERS,
    group=GROUP,
    lateness=timedelta(0),
    suite=HOURLY_WINNERS_SUITE,
    owners=OWNERS,
)
"""No lateness: all drivers of an hour are committed together, in the order of hours, so nothing of
an hour comes after it. With any lateness a winner would be known only when the next hour ends."""
