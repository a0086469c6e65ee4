"""P19: a ride that lasts more than two hours raises one alert; the exercise's two versions.

The newer one is the platform's rule; its cases of lost and disordered events, and that its alerts
do not depend on how arrivals are cut, are in tests/unit/assets/taxi/test_long_rides.py.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest
from hypothesis import given

from assets.taxi.long_rides import LongRide, LongRides, Ride
from rivermark.process import Context, KeyedProcess, ValueState
from rivermark.testing import ProcessHarness, assert_rows_equal, split_invariant
from simulator.taxi.arrivals import rides_as_they_arrive
from simulator.taxi.rides import RideEvent
from tests.unit.assets.taxi.test_long_rides import alert, ended, started, stories
from tests.unit.process.pipelines.times import HOUR, MINUTE, NOON

LIMIT: Final = 2 * HOUR
CLEAN_UP: Final = 4 * HOUR


class LongRidesByStart(KeyedProcess[Ride, Ride]):
    """The older version of the exercise: the START event is the alert, and only a timer gives one.

    Keeps the first event of a ride; its partner clears it, or the timer. An END that comes before
    its START never alerts.
    """

    key = "ride_id"
    time = "event_time"
    hold = False

    first: ValueState[Ride]

    def on_event(self, event: Ride, ctx: Context[Ride]) -> None:
        first = self.first.value
        if first is None:
            self.first.value = event
            wait = LIMIT if event.is_start else CLEAN_UP
            ctx.timers.event.register(event.event_time + wait)
            return
        ctx.timers.event.delete(first.event_time + (LIMIT if first.is_start else CLEAN_UP))
        self.first.clear()

    def on_timer(self, at: int, ctx: Context[Ride]) -> None:
        first = self.first.value
        self.first.clear()
        if first is not None and first.is_start:
            ctx.emit(first)


@pytest.fixture
def rides() -> ProcessHarness[Ride, LongRide]:
    return ProcessHarness(LongRides())


@pytest.mark.parametrize("end_first", [False, True])
@pytest.mark.parametrize(("hours", "alerts"), [(1, []), (3, [alert(1, NOON)])])
def test_both_events_of_a_ride_decide_without_a_watermark(
    rides: ProcessHarness[Ride, LongRide], hours: int, alerts: list[LongRide], end_first: bool
) -> None:
    events = [started(1, NOON), ended(1, NOON + hours * HOUR)]
    for event in reversed(events) if end_first else events:
        rides.feed(event)

    assert_rows_equal(rides.outputs(), alerts)
    assert rides.is_empty()


def test_a_start_alone_raises_its_alert_when_the_watermark_is_two_hours_on(
    rides: ProcessHarness[Ride, LongRide],
) -> None:
    rides.feed([started(1, NOON), started(2, NOON + 3 * HOUR)])
    # A later ride does not move the watermark by itself.
    assert rides.outputs() == []
    assert rides.timers_of(1).event == (NOON + LIMIT,)

    assert rides.advance_watermark(NOON + LIMIT - 1) == []
    assert rides.advance_watermark(NOON + LIMIT) == [alert(1, NOON)]


def test_b027_a_timer_for_a_time_that_has_passed_fires_in_the_same_batch(
    rides: ProcessHarness[Ride, LongRide],
) -> None:
    rides.advance_watermark(NOON + 30 * MINUTE)

    assert rides.feed(started(8, NOON - 115 * MINUTE)) == [alert(8, NOON - 115 * MINUTE)]


def test_the_older_version_gives_the_start_event() -> None:
    rides = ProcessHarness(LongRidesByStart())
    rides.feed(started(1, NOON))
    rides.advance_watermark(NOON + LIMIT)

    assert rides.outputs() == [started(1, NOON)]


def test_in_the_older_version_an_end_that_comes_first_never_alerts() -> None:
    rides = ProcessHarness(LongRidesByStart())
    rides.feed(ended(1, NOON + 3 * HOUR))
    rides.feed(started(1, NOON))
    rides.end_of_input()

    assert rides.outputs() == []
    assert rides.is_empty()


def as_ride(event: RideEvent) -> Ride:
    at = int(event.event_time.timestamp() * 1_000)
    return Ride(event.ride_id, event.is_start, at, event.taxi_id, event.driver_id)


def test_the_generated_rides_have_the_published_alerts_in_order_of_arrival() -> None:
    rides = ProcessHarness(LongRides())
    arrived = [as_ride(each) for each in rides_as_they_arrive(60_000)]
    newest = 0
    for start in range(0, len(arrived), 20_000):
        batch = arrived[start : start + 20_000]
        rides.feed(batch)
        newest = max(newest, *(each.event_time for each in batch))
        rides.advance_watermark(newest - MINUTE)
    rides.end_of_input()

    long = sorted(each.ride_id for each in rides.outputs())
    assert long[:5] == [1539, 1541, 1600, 1620, 1630]
    assert 1715 not in long
    assert len(long) == 544
    assert rides.is_empty()


@given(stories())
def test_the_older_version_alerts_by_the_timer_alone(story: list[Ride]) -> None:
    ran = split_invariant(LongRidesByStart, story, delay=timedelta(hours=30))

    # So late a watermark lets every partner come before the timer: only lost ENDs alert.
    ends = {each.ride_id for each in story if not each.is_start}
    lost = [each for each in story if each.is_start and each.ride_id not in ends]
    assert_rows_equal(ran.outputs.main, lost)
    assert ran.state is None
