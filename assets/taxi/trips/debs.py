"""Trips of 2013 in the old layout: coordinates instead of zones, no header (ACM DEBS 2015).

The layout is that of the DEBS 2015 Grand Challenge, made from TLC's trip_data and trip_fare files.
"""

from __future__ import annotations

from datetime import date
from typing import Final

from assets.taxi.grid import EAST, NORTH, SOUTH, WEST
from assets.taxi.trips.contract import MILES, MONEY
from assets.taxi.trips.ingest import TLC
from assets.taxi.trips.new_york import ZONE
from rivermark import Contract, Field, Rule, expect, readers
from rivermark.sources import FileSource

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


LENGTH: Final = "date_diff('second', pickup_at, dropoff_at)"


def _inside(end: str) -> str:
    return (
        f"{end}_longitude BETWEEN {WEST} AND {EAST} AND {end}_latitude BETWEEN {SOUTH} AND {NORTH}"
    )


RULES: Final = (
    Rule(
        "outside_new_york",
        # An end without coordinates is not known to be inside, so the row is broken too.
        f"NOT coalesce({_inside('pickup')} AND {_inside('dropoff')}, false)",
        "quarantine",
        "An end outside longitude -74.05 to -73.70, latitude 40.5 to 41.0: (0, 0), half zero, off "
        "the planet, or beyond the city.",
    ),
    Rule(
        "dropoff_before_pickup",
        "dropoff_at < pickup_at",
        "flag",
        "Dropoff earlier than pickup.",
    ),
    Rule("zero_length", f"{LENGTH} = 0", "flag", "Dropoff in the second of the pickup."),
    Rule(
        "stated_length_differs",
        f"stated_seconds <> {LENGTH}",
        "flag",
        "The stated seconds are not those from pickup to dropoff.",
    ),
    Rule("zero_distance", "distance_miles = 0", "flag", "A distance of 0 miles."),
)

_LOCAL: Final = readers.local_timestamp(ZONE)

DEBS_TRIPS: Final = TLC.ingest(
    "taxi/debs_trips",
    source=FileSource(folder="taxi/debs", format="csv", columns=COLUMNS),
    contract=Contract(
        fields=(
            Field("pickup_at", "timestamp", required=True, read=_LOCAL, description="UTC."),
            Field("dropoff_at", "timestamp", required=True, read=_LOCAL, description="UTC."),
            Field("medallion", "string", required=True, description="The taxi."),
            Field("driver", "string", required=True, description="The driver's licence."),
            Field("stated_seconds", "int", description="Length, as the file states it."),
            Field("distance_miles", MILES, description="Miles, as the taximeter says."),
            *(Field(name, "double", description="Degrees.") for name in COLUMNS[6:10]),
            Field("payment", "string", description="CSH cash, CRD card, UNK unknown."),
            *(Field(name, MONEY, description="USD.") for name in COLUMNS[11:]),
        ),
        event_time="pickup_at",
        keys=("medallion", "driver", "pickup_at"),
        rules=RULES,
    ),
    lateness=None,
    description=(
        "Trips of 2013 with coordinates and fares, both ends inside New York; the others are "
        "quarantined. Times are UTC, from New York wall-clock time."
    ),
    days=TLC.days("pickup_at", start=date(2013, 1, 1)),
    personal=("medallion", "driver"),
    expect=[
        expect.unique(("medallion", "driver", "pickup_at")),
        expect.between("pickup_longitude", WEST, EAST),
        expect.between("dropoff_longitude", WEST, EAST),
        expect.between("pickup_latitude", SOUTH, NORTH),
        expect.between("dropoff_latitude", SOUTH, NORTH),
        expect.in_set("payment", ("CSH", "CRD", "UNK"), severity="warning"),
    ],
)
"""A dump: its pickups are up to 46 minutes out of order (it is sorted by dropoff), none is late."""
