"""P4: a temperature that rises for one second without a break raises a warning."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from hypothesis import given, settings

from rivermark.process import (
    TTL,
    Context,
    KeyedProcess,
    ProcessHarness,
    ValueState,
    split_invariant,
)
from tests.unit.process.pipelines.sensors import Reading, reading, readings
from tests.unit.process.pipelines.times import SECOND

AN_HOUR = TTL(timedelta(hours=1))


class Warned(msgspec.Struct, frozen=True):
    id: str
    at: int


class RisingTemperature(KeyedProcess[Reading, Warned]):
    """Keeps the last temperature for an hour, and the instant at which its rise will have lasted.

    A lower reading calls the warning off; an equal one changes nothing; the next rise after a
    warning starts anew. No reading is 'none', not 0.0.
    """

    key = "id"
    time = "timestamp"
    order = "event_time"
    hold = True

    last: ValueState[float] = ValueState(ttl=AN_HOUR)
    deadline: ValueState[int]

    def on_event(self, event: Reading, ctx: Context[Warned]) -> None:
        last, deadline = self.last.value, self.deadline.value
        self.last.value = event.temperature
        if last is None or event.temperature < last:
            if deadline is not None:
                ctx.timers.event.delete(deadline)
                self.deadline.clear()
        elif event.temperature > last and deadline is None:
            self.deadline.value = event.timestamp + SECOND
            ctx.timers.event.register(event.timestamp + SECOND)

    def on_timer(self, at: int, ctx: Context[Warned]) -> None:
        self.deadline.clear()
        ctx.emit(Warned(ctx.key, at))


class RisingByTheClock(KeyedProcess[Reading, Warned]):
    """The same by the wall clock: what an operator wants to hear within the second."""

    key = "id"
    last: ValueState[float] = ValueState(ttl=TTL(timedelta(hours=1), clock="processing"))
    deadline: ValueState[int]

    def on_event(self, event: Reading, ctx: Context[Warned]) -> None:
        last, deadline = self.last.value, self.deadline.value
        self.last.value = event.temperature
        if last is None or event.temperature < last:
            if deadline is not None:
                ctx.timers.processing.delete(deadline)
                self.deadline.clear()
        elif event.temperature > last and deadline is None:
            self.deadline.value = ctx.processing_time + SECOND
            ctx.timers.processing.register(ctx.processing_time + SECOND)

    def on_timer(self, at: int, ctx: Context[Warned]) -> None:
        self.deadline.clear()
        ctx.emit(Warned(ctx.key, at))


RISE = [reading(0.0, 20), reading(0.2, 21), reading(0.4, 22), reading(0.6, 22)]
BREAK = reading(0.7, 21.5)


def test_a_rise_of_one_second_warns_though_an_equal_reading_lies_in_it() -> None:
    rising = ProcessHarness(RisingTemperature())
    rising.feed(RISE)

    assert rising.advance_watermark(1_199) == []
    assert rising.advance_watermark(1_200) == [Warned("sensor_1", 1_200)]


def test_a_lower_reading_within_the_second_calls_the_warning_off() -> None:
    rising = ProcessHarness(RisingTemperature())
    rising.feed([*RISE, BREAK])

    assert rising.end_of_input() == []
    assert rising.is_empty()


def test_a_true_zero_is_a_reading() -> None:
    rising = ProcessHarness(RisingTemperature())
    rising.feed([reading(0, 0.0), reading(0.1, 1.0)])

    assert rising.end_of_input() == [Warned("sensor_1", 1_100)]


def test_by_the_wall_clock_the_warning_comes_with_the_first_batch_after_the_second() -> None:
    rising = ProcessHarness(RisingByTheClock())
    for each in RISE:
        rising.advance_processing_time(each.timestamp)
        rising.feed(each)
    assert rising.advance_processing_time(1_100) == []

    assert rising.advance_processing_time(1_700) == [Warned("sensor_1", 1_200)]
    rising.advance_processing_time(3_600_700)
    assert rising.is_empty()


def test_by_the_wall_clock_too_a_lower_reading_calls_it_off() -> None:
    rising = ProcessHarness(RisingByTheClock())
    for each in [*RISE, BREAK]:
        rising.advance_processing_time(each.timestamp)
        rising.feed(each)

    assert rising.advance_processing_time(10_000) == []


@given(readings(last_second=4, coldest=20, hottest=24))
@settings(max_examples=60, deadline=None)
def test_warnings_do_not_depend_on_how_arrivals_are_cut(story: list[Reading]) -> None:
    ran = split_invariant(RisingTemperature, story, delay=timedelta(seconds=2))

    assert ran.state is None
