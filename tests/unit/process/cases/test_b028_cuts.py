"""Case B028: what a timer decides does not depend on where the input is cut into batches."""

from __future__ import annotations

import msgspec
import pytest

from assets.topology import TOPOLOGY
from rivermark import DeclarationError, Stream
from rivermark.process import Broadcast, Context, Input, KeyedProcess, Millis, ValueState
from rivermark.process.spark.build import ProcessBuild
from rivermark.testing import ProcessHarness
from tests.unit.process.pipelines.times import MINUTE, NOON

WAIT = 10 * MINUTE


class Part(msgspec.Struct, frozen=True):
    """A ride, or its fare."""

    ride_id: int
    at: Millis
    paid: bool


class Waits(KeyedProcess[Part, str]):
    """Keeps a ride for ten minutes, and says whether its fare came."""

    key = "ride_id"
    time = "at"
    hold = True

    ride: ValueState[Part]

    def on_event(self, event: Part, ctx: Context[str]) -> None:
        if not event.paid:
            self.ride.value = event
            ctx.timers.event.register(event.at + WAIT)
        elif self.ride.value is not None:
            self.ride.clear()
            ctx.emit("pair")

    def on_timer(self, at: int, ctx: Context[str]) -> None:
        if self.ride.value is not None:
            self.ride.clear()
            ctx.emit("unmatched")


class AsTheyCome(Waits):
    hold = False


RIDE, FARE = Part(1, NOON, paid=False), Part(1, NOON + 60 * MINUTE, paid=True)


def live(process: Waits) -> list[str]:
    harness = ProcessHarness(process)
    harness.feed(RIDE)
    harness.advance_watermark(NOON + WAIT)
    harness.feed(FARE)
    harness.advance_watermark(FARE.at)
    return harness.outputs()


def replay(process: Waits) -> list[str]:
    harness = ProcessHarness(process)
    harness.feed([RIDE, FARE])
    harness.advance_watermark(FARE.at)
    return harness.outputs()


def recompute(process: Waits) -> list[str]:
    harness = ProcessHarness(process)
    harness.feed([RIDE, FARE])
    harness.end_of_input()
    return harness.outputs()


def test_b028_a_partner_beyond_the_wait_is_unmatched_live_replayed_and_recomputed() -> None:
    assert live(Waits()) == replay(Waits()) == recompute(Waits()) == ["unmatched"]


def test_b028_a_rule_may_say_that_it_takes_events_as_they_come() -> None:
    assert not AsTheyCome.declaration.hold
    assert (live(AsTheyCome()), replay(AsTheyCome())) == (["unmatched"], ["pair"])


def remind(ctx: Context[str], at: Millis) -> None:
    """A helper, which may be in another module."""
    timers = ctx.timers
    timers.event.register(at + WAIT)


class ByHelper(KeyedProcess[Part, str]):
    """Says nothing of its order."""

    key = "ride_id"
    time = "at"

    def on_event(self, event: Part, ctx: Context[str]) -> None:
        remind(ctx, event.at)

    def on_timer(self, at: int, ctx: Context[str]) -> None:
        ctx.emit("time")


class Held(ByHelper):
    hold = True


class Arrival(ByHelper):
    order = "arrival"


class Forgiving(ByHelper):
    dead_letter = True


class Clock(ByHelper):
    """Of an event called as the timers are, which has nothing to do with them."""

    def on_event(self, event: Part, ctx: Context[str]) -> None:
        ctx.timers.processing.register(ctx.processing_time + WAIT)


def test_b028_r16_a_rule_that_does_not_say_whether_it_holds_is_refused_at_its_first_timer() -> None:
    for process in (ByHelper(), Forgiving()):
        refused(process)


def refused(process: KeyedProcess[Part, str]) -> None:
    harness = ProcessHarness(process)
    with pytest.raises(DeclarationError, match=r"write hold = True in the class.*hold = False"):
        harness.feed(RIDE)


def test_b028_r16_what_is_said_counts_wherever_timers_are_set() -> None:
    assert (Held.declaration.order, Held.declaration.hold) == ("event_time", True)
    assert (Arrival.declaration.order, Arrival.declaration.hold) == ("arrival", False)
    for process in (Held(), Arrival(), Clock()):
        ProcessHarness(process).feed(RIDE)


def test_b028_a_rule_that_holds_needs_a_time_for_each_input() -> None:
    with pytest.raises(DeclarationError, match=r"input 'switches' has none"):

        class Timeless(KeyedProcess[Part, str]):
            switches = Broadcast(Part)
            rides = Input(Part, key="ride_id", time="at")
            hold = True

            def on_switches(self, event: Part, ctx: Context[str]) -> None:
                ctx.emit("switched")

            def on_rides(self, event: Part, ctx: Context[str]) -> None:
                ctx.emit("ride")


BY_NATURE = {
    "LongRides": "tests/unit/assets/taxi/test_long_rides.py: rides up to five hours",
    "CorrectedCounts": "windows with corrections, by design one row more where a reading was late",
}


def test_b028_every_shipped_rule_holds_or_is_proven_to_need_no_holding() -> None:
    rules = [
        s.build.declared
        for s in TOPOLOGY.streams
        if isinstance(s, Stream) and isinstance(s.build, ProcessBuild)
    ]
    assert len(rules) > 5
    assert {rule.name for rule in rules if not rule.hold} == BY_NATURE.keys()
