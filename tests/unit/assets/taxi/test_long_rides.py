"""P19 as the platform runs it: one alert for a ride of more than two hours, and nothing kept."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assets.taxi.long_rides import LIMIT, LongRide, LongRides, Ride
from rivermark.testing import ProcessHarness, split_invariant
from simulator.taxi.arrivals import rides_as_they_arrive
from tests.oracles.rides import in_box
from tests.unit.process.pipelines.times import HOUR, MINUTE, NOON

TEN = NOON - 2 * HOUR

LIMIT_MILLIS = LIMIT // timedelta(milliseconds=1)


def started(ride_id: int, at: int) -> Ride:
    return Ride(ride_id, True, at, 1, 2)


def ended(ride_id: int, at: int) -> Ride:
    return Ride(ride_id, False, at, 1, 2)


def alert(ride_id: int, start: int) -> LongRide:
    return LongRide(ride_id, 1, 2, start, start + 2 * HOUR)


@pytest.fixture
def rides() -> ProcessHarness[Ride, LongRide]:
    return ProcessHarness(LongRides())


def test_b029_an_end_before_its_start_alerts_for_the_long_ride_alone(
    rides: ProcessHarness[Ride, LongRide],
) -> None:
    rides.feed([ended(9, NOON + 30 * MINUTE), ended(10, TEN + 50 * MINUTE)])
    rides.feed([started(9, TEN), started(10, TEN)])
    rides.advance_watermark(NOON + 2 * HOUR)

    assert rides.outputs() == [alert(9, TEN)]
    assert rides.is_empty()


def test_b030_an_end_that_never_comes_or_long_after_the_alert_leaves_nothing(
    rides: ProcessHarness[Ride, LongRide],
) -> None:
    rides.feed([started(11, TEN), started(12, TEN), ended(13, TEN)])
    rides.advance_watermark(NOON + HOUR)
    rides.feed(ended(11, NOON + 90 * MINUTE))
    rides.advance_watermark(NOON + 90 * MINUTE + 2 * HOUR)

    assert sorted(rides.outputs(), key=repr) == [alert(11, TEN), alert(12, TEN)]
    assert rides.is_empty()


@pytest.mark.parametrize(("minutes", "alerts"), [(120, 0), (121, 1)])
def test_exactly_two_hours_are_not_too_long(
    rides: ProcessHarness[Ride, LongRide], minutes: int, alerts: int
) -> None:
    rides.feed([started(1, NOON), ended(1, NOON + minutes * MINUTE)])
    rides.end_of_input()

    assert len(rides.outputs()) == alerts


@st.composite
def stories(draw: st.DrawFn) -> list[Ride]:
    """Rides that lose events, arriving up to a minute late."""
    arrivals: list[tuple[int, Ride]] = []
    for ride_id in range(draw(st.integers(1, 6))):
        start = NOON + draw(st.integers(0, 600)) * MINUTE
        end = start + draw(st.sampled_from([1, 119, 120, 121, 200, 300])) * MINUTE
        parts = draw(st.sampled_from(["both", "both", "start", "end"]))
        if parts != "end":
            arrivals.append((start + draw(st.integers(0, 59_999)), started(ride_id, start)))
        if parts != "start":
            arrivals.append((end + draw(st.integers(0, 59_999)), ended(ride_id, end)))
    return [event for _, event in sorted(arrivals, key=lambda each: each[0])]


@given(stories())
def test_alerts_are_those_of_the_whole_story_however_arrivals_are_cut(story: list[Ride]) -> None:
    ran = split_invariant(LongRides, story, delay=timedelta(minutes=1))

    ends = {each.ride_id: each.event_time for each in story if not each.is_start}
    expected = [
        alert(each.ride_id, each.event_time)
        for each in story
        if each.is_start
        and ends.get(each.ride_id, each.event_time + 24 * HOUR) > each.event_time + LIMIT_MILLIS
    ]
    assert sorted(ran.outputs.main, key=repr) == sorted(expected, key=repr)
    assert ran.state is None


def test_of_the_generated_rides_inside_the_city_the_first_long_one_is_1620() -> None:
    rides = ProcessHarness(LongRides())
    arrived = [
        Ride(e.ride_id, e.is_start, int(e.event_time.timestamp() * 1_000), e.taxi_id, e.driver_id)
        for e in rides_as_they_arrive(5_000)
        if in_box(e.start_lon, e.start_lat) and in_box(e.end_lon, e.end_lat)
    ]
    newest = 0
    for start in range(0, len(arrived), 1_000):
        batch = arrived[start : start + 1_000]
        rides.feed(batch)
        newest = max(newest, *(each.event_time for each in batch))
        rides.advance_watermark(newest - MINUTE)
    rides.end_of_input()

    long = sorted(each.ride_id for each in rides.outputs())
    assert long[0] == 1620
    assert not {1539, 1541, 1600, 1630} & set(long)
    assert rides.is_empty()
