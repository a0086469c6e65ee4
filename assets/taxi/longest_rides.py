"""The longest ride from each start cell, told each time that it is beaten."""

from __future__ import annotations

from typing import Final

import msgspec

from rivermark.process import Context, KeyedProcess, ValueState

MINUTE: Final = 60_000


class FinishedRide(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A ride at its END; times in milliseconds since the epoch (UTC)."""

    ride_id: int
    start_cell: int
    start_time: int
    event_time: int


class LongestRide(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The longest ride from a cell so far, in whole minutes, at the time of its END."""

    start_cell: int
    event_time: int
    minutes: int
    ride_id: int


class LongestRides(KeyedProcess[FinishedRide, LongestRide]):
    """Keeps the longest ride of each cell for good: there are at most 100,000 cells.

    Rides are taken in order of their END. One of equal length does not beat the one before it.
    """

    key = "start_cell"
    time = "event_time"
    order = "event_time"
    hold = True
    again_for_every_ride = False
    """Whether a ride that beats nothing gives the longest one again, as a rolling maximum does."""

    longest: ValueState[LongestRide]

    def on_event(self, event: FinishedRide, ctx: Context[LongestRide]) -> None:
        """Compare a ride with the longest so far."""
        minutes = (event.event_time - event.start_time) // MINUTE
        longest = self.longest.value
        if longest is None or minutes > longest.minutes:
            longest = LongestRide(event.start_cell, event.event_time, minutes, event.ride_id)
            self.longest.value = longest
            ctx.emit(longest)
        elif self.again_for_every_ride:
            ctx.emit(longest)
