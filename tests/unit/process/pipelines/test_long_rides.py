"""P19: a ride that lasts more than two hours raises one alert."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rivermark.process import Context, KeyedProcess, ValueState
from rivermark.testing import ProcessHarness, split_invariant
from simulator.taxi.arrivals import rides_as_they_arrive
from simulator.taxi.rides import RideEvent
from tests.unit.process.pipelines.times import HOUR, MINUTE, NOON

LIMIT: Final = 2 * HOUR
CLEAN_UP: Final = 4 * HOUR


class Ride(msgspec.Struct, frozen=True, array_like=True, gc=False):
    ride_id: int
    is_start: bool
    event_time: int
    send_time: int = 0


class LongRide(msgspec.Struct, frozen=True):
    ride_id: int
    at: int


class LongRides(KeyedProcess[Ride, LongRide]):
    """Keeps the first event of each ride. Its partner clears it, or a timer some time later.

    Rides may arrive out of order, START or END may be missing, there are no duplicates. An END that
    waits for its START, and the mark that an alert was given, are forgotten `CLEAN_UP` after their
    event; a START that comes later still would alert although its ride was short.
    """

    key = "ride_id"
    time = "event_time"

    first: ValueState[Ride]
    alerted: ValueState[bool]

    def on_event(self, event: Ride, ctx: Context[LongRide]) -> None:
        first = self.first.value
        if first is None:
            self.first.value = event
            if event.is_start:
                ctx.timers.event.register(event.event_time + LIMIT)
            else:
                ctx.timers.event.register(event.event_time + CLEAN_UP)
            return
        start, end = (first, event) if first.is_start else (event, first)
        if end.event_time - start.event_time > LIMIT and not self.alerted.value:
            self.alert(start, ctx)
        ctx.timers.event.delete(start.event_time + LIMIT)
        ctx.timers.event.delete(first.event_time + CLEAN_UP)
        self.first.clear()
        self.alerted.clear()

    def on_timer(self, at: int, ctx: Context[LongRide]) -> None:
        first = self.first.value
        if first is None:
            return
        if first.is_start and not self.alerted.value:
            self.alert(first, ctx)
            self.alerted.value = True
            ctx.timers.event.register(first.event_time + CLEAN_UP)
            return
        self.first.clear()
        self.alerted.clear()

    def alert(self, start: Ride, ctx: Context[LongRide]) -> None:
        ctx.emit(LongRide(start.ride_id, start.event_time + LIMIT))


class LongRidesByStart(KeyedProcess[Ride, Ride]):
    """The older version of the exercise: the START event is the alert, and only a timer gives one.

    Keeps the first event of a ride; its partner clears it, or the timer. An END that comes before
    its START never alerts.
    """

    key = "ride_id"
    time = "event_time"

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


class LongRidesBySendTime(LongRides):
    """As sent: event time is when the message was sent, the start is a field in it."""

    time = "send_time"


def started(ride_id: int, at: int) -> Ride:
    return Ride(ride_id, True, at)


def ended(ride_id: int, at: int) -> Ride:
    return Ride(ride_id, False, at)


@pytest.fixture
def rides() -> ProcessHarness[Ride, LongRide]:
    return ProcessHarness(LongRides())


@pytest.mark.parametrize("end_first", [False, True])
def test_a_short_ride_raises_no_alert_and_leaves_nothing(
    rides: ProcessHarness[Ride, LongRide], end_first: bool
) -> None:
    events = [started(1, NOON), ended(1, NOON + MINUTE)]
    rides.feed(reversed(events) if end_first else events)

    assert rides.outputs() == []
    assert rides.is_empty()


@pytest.mark.parametrize("end_first", [False, True])
def test_a_ride_of_three_hours_raises_one_alert_without_watermark(
    rides: ProcessHarness[Ride, LongRide], end_first: bool
) -> None:
    events = [started(1, NOON), ended(1, NOON + 3 * HOUR)]
    for event in reversed(events) if end_first else events:
        rides.feed(event)

    assert rides.outputs() == [LongRide(1, NOON + LIMIT)]
    assert rides.is_empty()


def test_a_start_alone_raises_its_alert_when_the_watermark_is_two_hours_on(
    rides: ProcessHarness[Ride, LongRide],
) -> None:
    rides.feed(started(1, NOON))
    assert rides.timers_of(1).event == (NOON + LIMIT,)

    assert rides.advance_watermark(NOON + LIMIT - 1) == []
    assert rides.advance_watermark(NOON + LIMIT) == [LongRide(1, NOON + LIMIT)]


def test_a_later_ride_does_not_move_the_watermark_by_itself(
    rides: ProcessHarness[Ride, LongRide],
) -> None:
    rides.feed([started(1, NOON), started(2, NOON + 3 * HOUR)])

    assert rides.outputs() == []


def test_a_ride_of_exactly_two_hours_raises_no_alert(
    rides: ProcessHarness[Ride, LongRide],
) -> None:
    rides.feed([started(1715, NOON), ended(1715, NOON + LIMIT)])
    rides.end_of_input()

    assert rides.outputs() == []


def test_b030_an_end_after_the_alert_raises_no_second_one_and_clears(
    rides: ProcessHarness[Ride, LongRide],
) -> None:
    rides.feed(started(11, NOON))
    rides.advance_watermark(NOON + 3 * HOUR)
    rides.feed(ended(11, NOON + 3 * HOUR + 30 * MINUTE))

    assert rides.outputs() == [LongRide(11, NOON + LIMIT)]
    assert rides.is_empty()


def test_b030_rides_with_a_lost_event_leave_nothing_in_the_end(
    rides: ProcessHarness[Ride, LongRide],
) -> None:
    rides.feed([started(12, NOON), ended(13, NOON)])
    rides.advance_watermark(NOON + CLEAN_UP)

    assert rides.outputs() == [LongRide(12, NOON + LIMIT)]
    assert rides.is_empty()


def test_b029_an_end_long_before_its_start_arrives_alerts_only_for_the_long_ride(
    rides: ProcessHarness[Ride, LongRide],
) -> None:
    rides.feed([ended(9, NOON + 30 * MINUTE), ended(10, NOON - 70 * MINUTE)])
    rides.feed([started(9, NOON - 2 * HOUR), started(10, NOON - 2 * HOUR)])
    rides.advance_watermark(NOON + 2 * HOUR)

    assert rides.outputs() == [LongRide(9, NOON)]
    assert rides.is_empty()


def test_b027_a_timer_for_a_time_that_has_passed_fires_in_the_same_batch() -> None:
    rides = ProcessHarness(LongRidesBySendTime())
    rides.advance_watermark(NOON + 30 * MINUTE)
    held_back = Ride(8, True, NOON - 115 * MINUTE, send_time=NOON + 31 * MINUTE)

    assert rides.feed(held_back) == [LongRide(8, NOON + 5 * MINUTE)]


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
@settings(max_examples=60)
def test_alerts_do_not_depend_on_how_arrivals_are_cut(story: list[Ride]) -> None:
    ran = split_invariant(LongRides, story, delay=timedelta(minutes=1))

    starts = {each.ride_id: each.event_time for each in story if each.is_start}
    ends = {each.ride_id: each.event_time for each in story if not each.is_start}
    never = NOON + 24 * HOUR
    long = {each for each, start in starts.items() if ends.get(each, never) > start + LIMIT}
    assert {each.ride_id for each in ran.outputs.main} == long
    assert len(ran.outputs.main) == len(long)
    assert ran.late == []
    assert ran.state is None


def as_ride(event: RideEvent) -> Ride:
    return Ride(event.ride_id, event.is_start, int(event.event_time.timestamp() * 1_000))


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
@settings(max_examples=30)
def test_the_older_version_alerts_by_the_timer_alone(story: list[Ride]) -> None:
    ran = split_invariant(LongRidesByStart, story, delay=timedelta(hours=30))

    # So late a watermark lets every partner come before the timer: only lost ENDs alert.
    ends = {each.ride_id for each in story if not each.is_start}
    lost = [each for each in story if each.is_start and each.ride_id not in ends]
    assert sorted(ran.outputs.main, key=repr) == sorted(lost, key=repr)
    assert ran.state is None
