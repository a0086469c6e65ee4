"""Case B028: what a timer decides does not depend on where the input is cut into batches."""

from __future__ import annotations

import types

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
    """Keeps a ride for ten minutes, and says whether its fare came. Says nothing of an order."""

    key = "ride_id"
    time = "at"

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
    """A helper beside the class."""
    timers = ctx.timers
    timers.event.register(at + WAIT)


def test_b028_timers_are_found_wherever_the_class_sets_them() -> None:
    class ByHelper(KeyedProcess[Part, str]):
        key = "ride_id"
        time = "at"

        def on_event(self, event: Part, ctx: Context[str]) -> None:
            remind(ctx, event.at)

        def on_timer(self, at: int, ctx: Context[str]) -> None:
            ctx.emit("time")

    class Inside(ByHelper):
        def on_event(self, event: Part, ctx: Context[str]) -> None:
            def remind(after: int) -> None:
                ctx.timers.event.register(event.at + after)

            remind(WAIT)

    class Clock(KeyedProcess[Part, str]):
        key = "ride_id"
        time = "at"

        def on_event(self, event: Part, ctx: Context[str]) -> None:
            ctx.timers.processing.register(ctx.processing_time + WAIT)

        def on_timer(self, at: int, ctx: Context[str]) -> None:
            ctx.emit("time")

    class Arrival(Inside):
        order = "arrival"

    held = {c.__name__: (c.declaration.order, c.declaration.hold) for c in (ByHelper, Inside)}
    assert held == {"ByHelper": ("event_time", True), "Inside": ("event_time", True)}
    assert not Clock.declaration.hold
    assert (Arrival.declaration.order, Arrival.declaration.hold) == ("arrival", False)


def test_b028_a_rule_that_cannot_hold_has_to_say_so() -> None:
    class Said(KeyedProcess[Part, str]):
        switches = Broadcast(Part)
        rides = Input(Part, key="ride_id", time="at")
        hold = False

        def on_switches(self, event: Part, ctx: Context[str]) -> None:
            ctx.emit("switched")

        def on_rides(self, event: Part, ctx: Context[str]) -> None:
            ctx.timers.event.register(event.at + WAIT)

        def on_timer(self, at: int, ctx: Context[str]) -> None:
            ctx.emit("time")

    assert not Said.declaration.hold
    silent = {name: value for name, value in vars(Said).items() if name != "hold"}
    with pytest.raises(DeclarationError, match=r"input 'switches' has no time .* hold = False"):
        types.new_class("Silent", (KeyedProcess[Part, str],), {}, lambda body: body.update(silent))


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
