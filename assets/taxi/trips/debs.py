"""Trips of 2013 in the old layout: coordinates instead of zones, no header (ACM DEBS 2015).

The layout is that of the DEBS 2015 Grand Challenge, made from TLC's trip_data and trip_fare files.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, IntegerType, StringType, TimestampType

from assets.taxi.trips.box import EAST, NORTH, SOUTH, WEST
from assets.taxi.trips.contract import MILES, MONEY
from assets.taxi.trips.ingest import GROUP
from assets.taxi.trips.new_york import ZONE
from assets.taxi.trips.suites import DEBS_TRIPS_SUITE
from rivermark import FileSource
from rivermark.model.contract import Contract, Field, Rule
from rivermark.model.field_readers import local_timestamp
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily

COLUMNS: Final = (
    "medallion",
    "driver",
    "pickup_at",
    "dropoff_at",
    "stated_seconds",
    "distance_miles",
    "pickup_longitude",
    "pickup_latitude",
    "dropoff_longitude",
    "dropoff_latitude",
    "payment",
    "fare",
    "surcharge",
    "mta_tax",
    "tip",
    "tolls",
    "total",
)
"""The columns of a line, in order; our names, because the files have none."""


def _inside(end: str) -> Column:
    longitude, latitude = F.col(f"{end}_longitude"), F.col(f"{end}_latitude")
    return longitude.between(WEST, EAST) & latitude.between(SOUTH, NORTH)


def _outside_new_york() -> Column:
    # An end without coordinates is not known to be inside, so the row is broken too.
    return ~F.coalesce(_inside("pickup") & _inside("dropoff"), F.lit(False))


def _length() -> Column:
    return F.unix_timestamp("dropoff_at") - F.unix_timestamp("pickup_at")


RULES: Final = (
    Rule(
        "outside_new_york",
        _outside_new_york,
        "quarantine",
        "An end outside longitude -74.05 to -73.70, latitude 40.5 to 41.0: (0, 0), half zero, off "
        "the planet, or beyond the city.",
    ),
    Rule(
        "dropoff_before_pickup",
        lambda: F.col("dropoff_at") < F.col("pickup_at"),
        "flag",
        "Dropoff earlier than pickup.",
    ),
    Rule("zero_length", lambda: _length() == 0, "flag", "Dropoff in the second of the pickup."),
    Rule(
        "stated_length_differs",
        lambda: F.col("stated_seconds") != _length(),
        "flag",
        "The stated seconds are not those from pickup to dropoff.",
    ),
    Rule("zero_distance", lambda: F.col("distance_miles") == 0, "flag", "A distance of 0 miles."),
)

_LOCAL: Final = local_timestamp(ZONE)

DEBS_TRIPS: Final = Ingest(
    name="taxi/debs_trips",
    source=FileSource(folder="taxi/debs", format="csv", columns=COLUMNS),
    contract=Contract(
        fields=(
            Field("pickup_at", TimestampType(), required=True, read=_LOCAL, description="UTC."),
            Field("dropoff_at", TimestampType(), required=True, read=_LOCAL, description="UTC."),
            Field("medallion", StringType(), required=True, description="The taxi."),
            Field("driver", StringType(), required=True, description="The driver's licence."),
            Field("stated_seconds", IntegerType(), description="Length, as the file states it."),
            Field("distance_miles", MILES, description="Miles, as the taximeter says."),
            *(Field(name, DoubleType(), description="Degrees.") for name in COLUMNS[6:10]),
            Field("payment", StringType(), description="CSH cash, CRD card, UNK unknown."),
            *(Field(name, MONEY, description="USD.") for name in COLUMNS[11:]),
        ),
        event_time="pickup_at",
        keys=("medallion", "driver", "pickup_at"),
        rules=RULES,
    ),
    lateness=None,
    description=(
        "Trips of 2013 with coordinates and fares, both ends inside New York; the others are set "
        "aside. Times are UTC, from New York wall-clock time."
    ),
    group=GROUP,
    days=Daily(column="pickup_at", start=date(2013, 1, 1), zone=ZONE),
    personal=("medallion", "driver"),
    suite=DEBS_TRIPS_SUITE,
)
"""A dump: its pickups are up to 46 minutes out of order (it is sorted by dropoff), none is late."""
