"""A ride meets its fare, or waits for it in vain: the join of two inputs by hand."""

from __future__ import annotations

from typing import Final

import msgspec

from rivermark.process import Context, Input, KeyedProcess, SideOutput, ValueState
from tests.unit.process.pipelines.times import MINUTE

WAIT: Final = 10 * MINUTE


class Ride(msgspec.Struct, frozen=True, tag="ride"):
    ride_id: int
    at: int


class Fare(msgspec.Struct, frozen=True, tag="fare"):
    ride_id: int
    at: int
    total: int = 0


class Pair(msgspec.Struct, frozen=True):
    ride: Ride
    fare: Fare


class RidesWithFares(KeyedProcess[Ride | Fare, Pair]):
    """Keeps whichever side came first until the other comes, or ten minutes of event time pass.

    Each side has its own timer, and the one that was waited for takes it back. Events are held: a
    partner that comes later than that is unmatched in a live run, a replay and a recompute alike.
    """

    hold = True

    rides = Input(Ride, key="ride_id", time="at")
    fares = Input(Fare, key="ride_id", time="at")
    unmatched_rides = SideOutput("unmatched_rides", Ride)
    unmatched_fares = SideOutput("unmatched_fares", Fare)

    ride: ValueState[Ride]
    fare: ValueState[Fare]

    def on_rides(self, event: Ride, ctx: Context[Pair]) -> None:
        fare = self.fare.value
        if fare is None:
            self.ride.value = event
            ctx.timers.event.register(event.at + WAIT)
            return
        ctx.timers.event.delete(fare.at + WAIT)
        self.fare.clear()
        ctx.emit(Pair(event, fare))

    def on_fares(self, event: Fare, ctx: Context[Pair]) -> None:
        ride = self.ride.value
        if ride is None:
            self.fare.value = event
            ctx.timers.event.register(event.at + WAIT)
            return
        ctx.timers.event.delete(ride.at + WAIT)
        self.ride.clear()
        ctx.emit(Pair(ride, event))

    def on_timer(self, at: int, ctx: Context[Pair]) -> None:
        ride, fare = self.ride.value, self.fare.value
        if ride is not None and ride.at + WAIT == at:
            ctx.output(self.unmatched_rides, ride)
            self.ride.clear()
        if fare is not None and fare.at + WAIT == at:
            ctx.output(self.unmatched_fares, fare)
            self.fare.clear()
