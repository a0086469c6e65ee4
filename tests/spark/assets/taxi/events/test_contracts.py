"""Which ride, fare and trip events are set aside, and why."""

from datetime import UTC, datetime
from decimal import Decimal

from pyspark.sql import SparkSession

from assets.taxi.fares import FARE_EVENT
from assets.taxi.rides import RIDE_EVENT
from assets.taxi.trip_events import TRIP_EVENT
from simulator.landing.json_lines import Value
from tests.spark.assets.taxi.events.ride_rows import MINUTE, NOON, fare, ride
from tests.spark.helpers.contract_problems import problems


def without(row: dict[str, Value], *names: str) -> dict[str, Value]:
    return {name: value for name, value in row.items() if name not in names}


def test_rides_that_cannot_be_are_set_aside_with_their_reasons(spark: SparkSession) -> None:
    end = ride(1, NOON + 20 * MINUTE, is_start=False)
    rows = [
        ride(1),
        end,
        without(ride(1), "ride_id"),
        {**ride(1), "start_lon": None},
        {**ride(1), "end_lat": 404.97812},
        {**ride(1), "start_lon": "west"},
        {**end, "end_time": None},
        {**end, "is_start": True},
        {**end, "start_time": NOON + 21 * MINUTE},
        {**ride(1), "event_time": None},
        {**ride(1), "event_time": "not a time"},
        # Outside the city is no fault of the event: cleansing decides.
        ride(1, start=(0.0, 0.0)),
    ]

    assert problems(spark, RIDE_EVENT, rows) == [
        [],
        [],
        ["missing_ride_id"],
        ["missing_start_lon"],
        ["coordinates_out_of_range"],
        ["unreadable_start_lon"],
        ["end_without_end_time"],
        ["start_with_end_time"],
        ["ends_before_it_starts"],
        ["missing_event_time"],
        ["unreadable_event_time"],
        [],
    ]


def test_fares_without_an_amount_or_below_zero_are_set_aside(spark: SparkSession) -> None:
    rows = [
        fare(1),
        {**fare(1), "tip": Decimal("-0.01")},
        {**fare(1), "tip": None},
        {**fare(1), "tip": Decimal("0.00")},
        without(fare(1), "ride_id"),
    ]

    assert problems(spark, FARE_EVENT, rows) == [
        [],
        ["negative_amount"],
        ["missing_tip"],
        [],
        ["missing_ride_id"],
    ]


def test_trip_events_need_the_zone_where_they_happened(spark: SparkSession) -> None:
    event: dict[str, Value] = {
        "trip_id": "a",
        "is_start": True,
        "event_time": datetime(2023, 12, 5, tzinfo=UTC),
        "pickup_zone": 74,
        "dropoff_zone": None,
    }

    assert problems(spark, TRIP_EVENT, [event, {**event, "is_start": False}]) == [[], ["no_zone"]]
