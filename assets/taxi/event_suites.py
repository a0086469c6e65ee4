"""What is expected of the tables that are made from ride, fare and trip events."""

from __future__ import annotations

from typing import Final

from assets.taxi.grid import COLUMNS, EAST, NORTH, ROWS, SOUTH, WEST
from rivermark.model import expectations as expect
from rivermark.model.suite import Suite
from rivermark.quality.time_expectations import no_overlap

LAST_CELL: Final = COLUMNS * ROWS - 1
LAST_ZONE: Final = 265
MOST_TIPS: Final = 10_000
"""No driver earns so many dollars of tips in an hour."""

ORDERED_WINDOW: Final = expect.pair_ordered("window_start", "window_end", strictly=True)

ONE_HOUR: Final = expect.no_rows_where(
    "window_end <> window_start + INTERVAL 1 HOUR", name="a window is an hour"
)

RIDE_EVENTS_SUITE: Final = Suite(
    name="taxi/ride_events",
    expectations=(
        expect.no_rows_where("is_start = (end_time IS NOT NULL)", name="only an END has an end"),
        expect.pair_ordered("start_time", "end_time", allow_null_share=1.0),
        expect.between("start_lon", -180, 180),
        expect.between("start_lat", -90, 90),
        expect.between("end_lon", -180, 180),
        expect.between("end_lat", -90, 90),
        expect.between("passenger_count", 0, 9, allow_null_share=0.05, severity="warning"),
    ),
    may_be_empty=True,
)

FARE_EVENTS_SUITE: Final = Suite(
    name="taxi/fare_events",
    expectations=(
        expect.between("tip", 0),
        expect.between("tolls", 0),
        expect.between("total_fare", 0),
        expect.in_set("payment_type", ("CARD", "CASH"), severity="warning"),
        expect.no_rows_where(
            "total_fare < tip + tolls", name="the total covers its parts", severity="warning"
        ),
    ),
    may_be_empty=True,
)

TRIP_EVENTS_SUITE: Final = Suite(
    name="taxi/trip_events",
    expectations=(
        expect.no_rows_where(
            "CASE WHEN is_start THEN pickup_zone ELSE dropoff_zone END IS NULL",
            name="an event has a zone",
        ),
        expect.between("pickup_zone", 1, LAST_ZONE, allow_null_share=1.0, severity="warning"),
        expect.between("dropoff_zone", 1, LAST_ZONE, allow_null_share=1.0, severity="warning"),
        expect.no_rows_where(
            "is_start AND total IS NOT NULL", name="only an END knows what was charged"
        ),
    ),
    # Trips are replayed on demand.
    may_be_empty=True,
)

RIDES_OUTSIDE_SUITE: Final = Suite(
    name="taxi/rides_outside_city",
    expectations=(
        expect.no_rows_where(
            f"start_lon BETWEEN {WEST} AND {EAST} AND end_lon BETWEEN {WEST} AND {EAST} AND "
            f"start_lat BETWEEN {SOUTH} AND {NORTH} AND end_lat BETWEEN {SOUTH} AND {NORTH}",
            name="one end lies outside the city",
        ),
    ),
    may_be_empty=True,
)

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

UNMATCHED_RIDES_SUITE: Final = Suite(
    name="taxi/unmatched_rides",
    expectations=(expect.between("start_cell", 0, LAST_CELL),),
    may_be_empty=True,
)

UNMATCHED_FARES_SUITE: Final = Suite(
    name="taxi/unmatched_fares",
    expectations=(expect.between("total_fare", 0), expect.between("tip", 0)),
    may_be_empty=True,
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
        ONE_HOUR,
        no_overlap("driver_id"),
        expect.between("tips", 0, MOST_TIPS),
        expect.between("fares", 1),
    ),
)

HOURLY_WINNERS_SUITE: Final = Suite(
    name="taxi/hourly_winners",
    expectations=(
        expect.unique("window_end"),
        ORDERED_WINDOW,
        ONE_HOUR,
        no_overlap(()),
        expect.not_null("driver_id"),
        expect.between("tips", 0, MOST_TIPS),
    ),
)

ZONE_ACTIVITY_SUITE: Final = Suite(
    name="taxi/zone_activity",
    expectations=(
        expect.unique(("zone", "window_end")),
        ORDERED_WINDOW,
        no_overlap("zone"),
        expect.between("zone", 1, LAST_ZONE),
        expect.no_rows_where("starts + ends < 1", name="a zone with a row has had a trip"),
    ),
    # Trips are replayed on demand.
    may_be_empty=True,
)
