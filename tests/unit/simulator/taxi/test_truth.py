"""Goldens of the training's exercises, from the generator's own first rides."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from simulator.taxi.arrivals import rides_as_they_arrive
from simulator.taxi.city import EAST, NORTH, SOUTH, WEST, grid_cell, in_new_york
from simulator.taxi.fares import FareEvent, fares
from simulator.taxi.rides import RideEvent, rides
from simulator.taxi.truth import (
    HourlyTips,
    LongestRide,
    hourly_tips,
    hourly_winners,
    hours_closed,
    long_rides,
    longest_ride_per_cell,
    match,
    rides_in_new_york,
    waited_out,
)

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
A_MINUTE = timedelta(minutes=1)
TWO_HOURS = timedelta(hours=2)


def fare(driver: int, minute: int, tip: str) -> FareEvent:
    return FareEvent(
        ride_id=minute * 100 + driver,
        taxi_id=driver,
        driver_id=driver,
        start_time=NOON + minute * A_MINUTE,
        payment_type="CARD",
        tip=Decimal(tip),
        tolls=Decimal(0),
        total_fare=Decimal(20),
    )


def both_events(count: int) -> Iterator[RideEvent]:
    return rides_as_they_arrive(count)


@pytest.mark.parametrize(
    ("lon", "lat", "cell"),
    [
        (WEST, NORTH, 0),
        (-73.9857, 40.7484, 50295),
        (-73.7001, 40.5001, 99999),
        (EAST, SOUTH, 99999),
        (EAST, NORTH, 249),
        (WEST, SOUTH, 99750),
    ],
)
def test_places_lie_in_the_published_cells(lon: float, lat: float, cell: int) -> None:
    assert grid_cell(lon, lat) == cell


def test_the_border_is_in_new_york_and_a_hair_beyond_is_not() -> None:
    assert in_new_york(WEST, SOUTH)
    assert in_new_york(EAST, NORTH)
    assert not in_new_york(WEST - 1e-9, SOUTH)
    assert not in_new_york(EAST, NORTH + 1e-9)


def test_the_longest_rides_per_cell_without_cleansing() -> None:
    longest = longest_ride_per_cell(both_events(2000))

    assert len(longest) == 326
    assert max(longest, key=lambda row: row.minutes) == LongestRide(4254, 125, 1630)


def test_the_longest_rides_per_cell_after_cleansing() -> None:
    longest = longest_ride_per_cell(rides_in_new_york(both_events(2000)))

    assert len(longest) == 322
    assert max(longest, key=lambda row: row.minutes) == LongestRide(5998, 121, 1620)


def test_the_published_winners_of_six_hours() -> None:
    winners = hourly_winners(fares(1, 1_079))

    assert winners == [
        HourlyTips(NOON + timedelta(hours=1), 2013000089, Decimal(76)),
        HourlyTips(NOON + timedelta(hours=2), 2013000197, Decimal(71)),
        HourlyTips(NOON + timedelta(hours=3), 2013000118, Decimal(83)),
        HourlyTips(NOON + timedelta(hours=4), 2013000119, Decimal(81)),
        HourlyTips(NOON + timedelta(hours=5), 2013000195, Decimal(73)),
        HourlyTips(NOON + timedelta(hours=6), 2013000072, Decimal(123)),
    ]


def test_the_published_example_of_hourly_tips() -> None:
    given = [
        fare(1, 0, "1.00"),
        fare(1, 15, "5.00"),
        fare(1, 90, "10.00"),
        fare(2, 90, "20.00"),
        fare(3, 70, "0.00"),
        fare(4, 70, "0.00"),
        fare(4, 80, "1.00"),
        fare(5, 100, "10.00"),
    ]

    assert hourly_winners(given) == [
        HourlyTips(NOON + timedelta(hours=1), 1, Decimal("6.00")),
        HourlyTips(NOON + timedelta(hours=2), 2, Decimal("20.00")),
    ]
    assert HourlyTips(NOON + timedelta(hours=2), 3, Decimal(0)) in hourly_tips(given)


def test_of_equal_drivers_the_lowest_id_wins() -> None:
    winners = hourly_winners([fare(9, 1, "5.00"), fare(2, 3, "5.00"), fare(4, 2, "5.00")])

    assert [row.driver_id for row in winners] == [2]


def test_a_fare_on_the_hour_belongs_to_the_hour_that_begins() -> None:
    (row,) = hourly_tips([fare(1, 60, "1.00")])

    assert row.hour_end == NOON + timedelta(hours=2)


def test_an_hour_is_closed_when_the_watermark_reaches_its_end() -> None:
    rows = hourly_tips([fare(1, 0, "1.00"), fare(1, 60, "1.00")])
    one_o_clock = NOON + timedelta(hours=1)

    assert hours_closed(rows, one_o_clock) == rows[:1]
    assert hours_closed(rows, one_o_clock - timedelta(milliseconds=1)) == []


def test_a_ride_without_fare_and_a_fare_without_ride_are_left_over() -> None:
    first, second, third = rides(1, 3)
    paid = {row.ride_id: row for row in fares(1, 3)}

    matched = match([second.end, first.start, second.start], [paid[3], paid[2]])

    assert matched.pairs == [(second.start, paid[2])]
    assert matched.unmatched_rides == [first.start]
    assert matched.unmatched_fares == [paid[3]]
    assert third.start not in matched.unmatched_rides


def test_rides_in_are_pairs_and_left_overs() -> None:
    events = list(both_events(100))
    starts = [event for event in events if event.is_start]

    matched = match(events, [row for row in fares(1, 130) if row.ride_id % 3])

    assert len(matched.pairs) + len(matched.unmatched_rides) == len(starts)
    assert len(matched.unmatched_fares) == sum(1 for i in range(101, 131) if i % 3)


def test_a_partner_is_waited_for_until_the_watermark_has_passed_the_limit() -> None:
    limit = 10 * A_MINUTE

    assert not waited_out(NOON, limit, watermark=NOON + limit)
    assert waited_out(NOON, limit, watermark=NOON + limit + timedelta(milliseconds=1))


def test_the_first_long_rides_are_the_published_ones() -> None:
    assert long_rides(both_events(60_000))[:5] == [1539, 1541, 1600, 1620, 1630]
    assert len(long_rides(both_events(60_000))) == 544


def test_a_ride_of_exactly_two_hours_is_not_long() -> None:
    (ride,) = rides(1715, 1715)

    assert ride.end.event_time - ride.start.event_time == TWO_HOURS
    assert long_rides([ride.start, ride.end]) == []


def test_only_one_of_the_first_long_rides_lies_in_new_york() -> None:
    assert long_rides(rides_in_new_york(both_events(1640))) == [1620]


def test_a_start_without_end_is_long_once_the_watermark_is_two_hours_on() -> None:
    (ride,) = rides(1, 1)
    start = ride.start.event_time

    assert long_rides([ride.start], watermark=start + TWO_HOURS) == [1]
    assert long_rides([ride.start], watermark=start + TWO_HOURS - A_MINUTE) == []
    assert long_rides([ride.start]) == [1]


def test_an_end_without_start_is_long_by_its_own_word() -> None:
    (ride,) = rides(1, 1)
    late_end = replace(ride.end, end_time=ride.start.event_time + TWO_HOURS + A_MINUTE)

    assert long_rides([late_end]) == [1]
    assert long_rides([ride.end]) == []
