"""Long rides as a process function: the counterpart of PyFlink's (flink_process)."""

from __future__ import annotations

import msgspec

from bench.peers.workloads import HOUR
from rivermark.process import Context, KeyedProcess, ValueState


class Ride(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What the rule reads of a ride event; `event_time` in milliseconds."""

    ride_id: int
    is_start: bool
    event_time: int
    driver_id: int


class LongRide(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A ride without an END within two hours of its START."""

    ride_id: int
    driver_id: int
    start_ms: int


class LongRides(KeyedProcess[Ride, LongRide]):
    """Keeps the first event of a ride until the other comes or two hours have passed."""

    key = "ride_id"
    time = "event_time"
    hold = False  # As the peers, which hand events over as they come.
    first: ValueState[Ride]

    def on_event(self, event: Ride, ctx: Context[LongRide]) -> None:
        """Pair the two events."""
        first = self.first.value
        if first is None:
            self.first.value = event
            ctx.timers.event.register(event.event_time + 2 * HOUR)
            return
        ctx.timers.event.delete(first.event_time + 2 * HOUR)
        self.first.clear()
        start, end = (first, event) if first.is_start else (event, first)
        if end.event_time - start.event_time > 2 * HOUR:
            ctx.emit(LongRide(start.ride_id, start.driver_id, start.event_time))

    def on_timer(self, at: int, ctx: Context[LongRide]) -> None:
        """Two hours have passed."""
        first = self.first.value
        self.first.clear()
        if first is not None and first.is_start:
            ctx.emit(LongRide(first.ride_id, first.driver_id, first.event_time))
