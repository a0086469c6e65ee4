"""What is expected of the tables that are made from ride, fare and trip events."""

from __future__ import annotations

from typing import Final

from assets.taxi.grid import COLUMNS, EAST, NORTH, ROWS, SOUTH, WEST
from rivermark.quality import expectations as expect
from rivermark.quality.suite import Suite

LAST_CELL: Final = COLUMNS * ROWS - 1
LAST_ZONE: Final = 265
MOST_TIPS: Final = 10_000
"""No driver earns so many dollars of tips in an hour."""

ORDERED_WINDOW: Final = expect.pair_ordered("window_start", "window_end", strictly=True)

CLEAN_RIDES_SUITE: Final = Suite(
    name="taxi/clean_rides",
    expectations=(
        expect.unique(("ride_id", "is_start")),
        expect.between("start_lon", WEST, EAST),
        expect.between("end_lon", WEST, EAST),
        expect.between("start_lat", SOUTH, NORTH),
        expect.between("end_lat", SOUTH, NORTH),
        expect.between("start_cell", 0, LAST_CELL),
        expect.between("end_cell", 0, LAST_CELL),
        expect.no_rows_where("is_start = (end_time IS NOT NULL)", name="only an END has an end"),
        expect.between("passenger_count", 1, 6, allow_null_share=0.05, severity="warning"),
    ),
)

CLEAN_FARES_SUITE: Final = Suite(
    name="taxi/clean_fares",
    expectations=(
        expect.unique("ride_id"),
        expect.between("tip", 0),
        expect.between("tolls", 0),
        expect.in_set("payment_type", ("CARD", "CASH"), severity="warning"),
        expect.no_rows_where(
            "total_fare < tip + tolls", name="the total covers its parts", severity="warning"
        ),
    ),
)

RIDES_WITH_FARES_SUITE: Final = Suite(
    name="taxi/rides_with_fares",
    expectations=(
        expect.unique("ride_id"),
        expect.not_null("event_time"),
        expect.not_null("start_cell"),
        expect.not_null("total_fare"),
    ),
)

LONG_RIDES_SUITE: Final = Suite(
    name="taxi/long_rides",
    expectations=(
        expect.unique("ride_id"),
        expect.not_null("taxi_id"),
        expect.no_rows_where(
            "alert_time <> start_time + INTERVAL 2 HOURS", name="an alert comes after two hours"
        ),
    ),
)

LONGEST_RIDES_SUITE: Final = Suite(
    name="taxi/longest_rides",
    expectations=(
        expect.unique(("start_cell", "ride_id")),
        expect.between("start_cell", 0, LAST_CELL),
        expect.between("minutes", 0),
    ),
)

DRIVER_TIPS_SUITE: Final = Suite(
    name="taxi/driver_tips",
    expectations=(
        expect.unique(("driver_id", "window_end")),
        ORDERED_WINDOW,
        expect.between("tips", 0, MOST_TIPS),
        expect.between("fares", 1),
    ),
)

HOURLY_WINNERS_SUITE: Final = Suite(
    name="taxi/hourly_winners",
    expectations=(
        expect.unique("window_end"),
        ORDERED_WINDOW,
        expect.not_null("driver_id"),
        expect.between("tips", 0, MOST_TIPS),
    ),
)

ZONE_ACTIVITY_SUITE: Final = Suite(
    name="taxi/zone_activity",
    expectations=(
        expect.unique(("zone", "window_end")),
        ORDERED_WINDOW,
        expect.between("zone", 1, LAST_ZONE),
        expect.no_rows_where("starts + ends < 1", name="a zone with a row has had a trip"),
    ),
    # Trips are replayed on demand.
    may_be_empty=True,
)
