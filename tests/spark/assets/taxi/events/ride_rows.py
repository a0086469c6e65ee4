"""Ride and fare events for tests: told by what matters, the rest filled in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from assets.taxi.ingest import FARE_EVENTS, LATENESS, RIDE_EVENTS
from simulator.landing.json_lines import Value
from tests.spark.helpers.micro_batches import Feed, Rows

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
TIMES_SQUARE = (-73.9857, 40.7484)

Row = dict[str, Value]


def ride(
    ride_id: int,
    at: datetime = NOON,
    *,
    is_start: bool = True,
    start: tuple[float, float] = TIMES_SQUARE,
    end: tuple[float, float] = TIMES_SQUARE,
) -> Row:
    return {
        "ride_id": ride_id,
        "is_start": is_start,
        "event_time": at,
        "start_time": at if is_start else at - 20 * MINUTE,
        "end_time": None if is_start else at,
        "start_lon": start[0],
        "start_lat": start[1],
        "end_lon": end[0],
        "end_lat": end[1],
        "passenger_count": 1,
        "taxi_id": 7,
        "driver_id": 7,
    }


def fare(ride_id: int, at: datetime = NOON) -> Row:
    return {
        "ride_id": ride_id,
        "taxi_id": 7,
        "driver_id": 7,
        "event_time": at,
        "payment_type": "CARD",
        "tip": Decimal("2.50"),
        "tolls": Decimal("0.00"),
        "total_fare": Decimal("25.50"),
    }


def rides_feed(*batches: Rows) -> Feed:
    return Feed(RIDE_EVENTS.admitted.schema, "event_time", LATENESS, batches)


def fares_feed(*batches: Rows) -> Feed:
    return Feed(FARE_EVENTS.admitted.schema, "event_time", LATENESS, batches)
