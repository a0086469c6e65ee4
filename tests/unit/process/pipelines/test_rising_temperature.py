"""P4 by the wall clock: a temperature that rises for one second without a break."""

from __future__ import annotations

from datetime import timedelta

import msgspec

from rivermark.process import TTL, Context, KeyedProcess, ValueState
from rivermark.testing import ProcessHarness
from tests.unit.process.pipelines.sensors import Reading, reading
from tests.unit.process.pipelines.times import SECOND


class Warned(msgspec.Struct, frozen=True):
    id: str
    at: int


class RisingByTheClock(KeyedProcess[Reading, Warned]):
    """What an operator wants to hear within the second.

    A lower reading calls the warning off; an equal one changes nothing.
    """

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
