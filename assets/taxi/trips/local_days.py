"""New York days: how long each was, what was driven, averages with and without absurd records."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType

from assets.taxi.trips.columns import COUNT, DAY, SERVICE, SUM, day_of, schema
from assets.taxi.trips.counting import (
    RECORDS,
    REFUNDS,
    REPEATS,
    SUMMARY,
    count_of,
    is_counted,
    is_flagged,
    is_trip,
    summary,
)
from assets.taxi.trips.expected import FLAGGED_ARE_TRIPS, KNOWN_SERVICE, ORDERED_DAY
from assets.taxi.trips.ingest import TLC, TRIP_RECORDS
from assets.taxi.trips.twins import marked
from rivermark import expect

MOST_MILES_A_DAY: Final = 100
"""No day's average trip is longer, once absurd records are left out."""

AVERAGE: Final = DecimalType(16, 6)

LOCAL_DAY: Final = schema(
    *DAY,
    SERVICE,
    RECORDS,
    REPEATS,
    REFUNDS,
    *SUMMARY,
    ("average_miles", AVERAGE, "Miles a record, without absurd distances and repeats."),
    ("average_miles_all", AVERAGE, "Miles a record, absurd distances in, without repeats."),
    ("miles", SUM, "Miles in all, without absurd distances and repeats."),
    ("miles_all", SUM, "Miles in all, absurd distances in, without repeats."),
    ("measured", COUNT, "Records in `miles`: what average_miles divides by."),
    ("measured_all", COUNT, "Records in `miles_all`: what average_miles_all divides by."),
    ("long_trips", COUNT, "Trips over 2 hours, meters left on among them."),
    ("meters_left_on", COUNT, "Trips of 23 hours or more."),
    ("ambiguous", COUNT, "Trips whose local time the autumn clock change made ambiguous."),
)


def by_day(marked_records: DataFrame) -> DataFrame:
    """Sum marked records up by service and local day of the pickup."""
    driven = F.when(is_counted(), F.col("distance_miles"))
    believed = F.when(~is_flagged("absurd_distance"), driven)
    return (
        marked_records.groupBy(*day_of(F.col("pickup_at")), "service")
        .agg(
            F.count("*").alias("records"),
            count_of(F.col("is_repeat")).alias("repeats"),
            count_of(F.col("is_refund") & is_counted()).alias("refunds"),
            *summary(),
            F.avg(believed).cast(AVERAGE).alias("average_miles"),
            F.avg(driven).cast(AVERAGE).alias("average_miles_all"),
            F.sum(believed).cast(SUM).alias("miles"),
            F.sum(driven).cast(SUM).alias("miles_all"),
            F.count(believed).alias("measured"),
            F.count(driven).alias("measured_all"),
            count_of(is_trip() & is_flagged("long_trip")).alias("long_trips"),
            count_of(is_trip() & is_flagged("meter_left_on")).alias("meters_left_on"),
            count_of(is_trip() & is_flagged("ambiguous_local_time")).alias("ambiguous"),
        )
        .select(*LOCAL_DAY.names)
    )


def local_days(records: DataFrame) -> DataFrame:
    """Mark the twins among trip records, then sum them up by New York day."""
    return records.transform(marked).transform(by_day)


LOCAL_DAYS: Final = TLC.stream(
    reads=TRIP_RECORDS,
    build=local_days,
    writes=TLC.table(
        "taxi/local_days",
        LOCAL_DAY,
        description=(
            "One row a service and New York day of 23, 24 or 25 hours. Trips are records less "
            "surplus ones (twins with the same vendor, times and zones); fares and revenue are "
            "summed over all records but repeats, so refunds take off what they refund. Average "
            "distance is given without absurd records (over 100 miles) and with them."
        ),
        keys=("service", "day_end"),
        event_time="day_end",
        days="day_start",
    ),
    description="Trips, money and distances of each New York day.",
    kind="refresh",
    expect=[
        ORDERED_DAY,
        expect.in_set("hours_in_day", (23, 24, 25)),
        expect.no_rows_where("records <> trips + surplus", name="a record is a trip or surplus"),
        expect.no_rows_where("repeats + refunds > surplus", name="repeats, refunds are surplus"),
        expect.between("average_miles", 0, MOST_MILES_A_DAY, allow_null_share=0.01),
        FLAGGED_ARE_TRIPS,
        KNOWN_SERVICE,
    ],
    may_be_empty=False,
)
