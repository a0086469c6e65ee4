"""Goldens of the training's generator; the rows were printed by its own rules in OpenJDK 17."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest

from simulator.taxi.clock import TRAINING_CLOCK, RideClock
from simulator.taxi.fares import fares
from simulator.taxi.rides import DRAWN_TOGETHER, RideEvent, rides
from tests.oracles.rides import in_box

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)


def test_both_events_of_a_ride_differ_in_their_kind_and_end_only() -> None:
    for ride in rides(1, 50):
        assert (ride.start.is_start, ride.end.is_start) == (True, False)
        assert ride.start.event_time == ride.start.start_time == ride.end.start_time
        assert ride.end.event_time >= ride.start.event_time
        assert ride.start.driver_id == ride.end.driver_id
    for ride in rides(1490, 1560):
        assert inside(ride.start) == inside(ride.end)


def inside(ride: RideEvent) -> bool:
    return in_box(ride.start_lon, ride.start_lat) and in_box(ride.end_lon, ride.end_lat)


def test_cleansing_removes_the_published_rides() -> None:
    outside = [ride.start.ride_id for ride in rides(1, 20_000) if not inside(ride.start)]

    assert len(outside) == 389
    assert outside[:5] == [1497, 1499, 1539, 1541, 1558]


def test_a_fare_agrees_with_its_ride() -> None:
    for ride, fare in zip(rides(1, 500), fares(1, 500), strict=True):
        minutes = (ride.end.event_time - ride.start.event_time) // timedelta(minutes=1)
        assert (fare.ride_id, fare.driver_id) == (ride.start.ride_id, ride.start.driver_id)
        assert fare.event_time == ride.start.event_time
        assert fare.total_fare == 3 + minutes + fare.tip + fare.tolls
        assert fare.payment_type == ("CARD" if fare.ride_id % 2 == 0 else "CASH")
        assert (fare.tolls > 0) <= (fare.ride_id % 10 == 0)


def test_a_ride_is_the_same_wherever_the_world_begins() -> None:
    border = DRAWN_TOGETHER
    whole = list(rides(border - 3, border + 3))

    assert whole == [*rides(border - 3, border - 1), *rides(border, border + 3)]
    assert whole == list(islice(rides(border - 3, None), 7))


def test_another_clock_moves_times_and_nothing_else() -> None:
    city = RideClock(NOON, timedelta(milliseconds=3))

    ride, training = next(rides(7, 7, city)), next(rides(7, 7, TRAINING_CLOCK))

    assert ride.start.start_time == NOON + timedelta(milliseconds=21)
    lasts = ride.end.event_time - ride.start.event_time
    assert lasts == training.end.event_time - training.start.event_time
    assert ride.start.driver_id == training.start.driver_id


def test_a_clock_without_a_zone_or_without_spacing_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        RideClock(NOON.replace(tzinfo=None), timedelta(seconds=1))
    with pytest.raises(ValueError, match="apart"):
        RideClock(NOON, timedelta(0))
