"""Tips of each driver and hour as a process function: a window written by hand."""

from __future__ import annotations

import msgspec

from bench.peers.workloads import HOUR
from rivermark.process import Context, KeyedProcess, MapState


class Fare(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A tip; `event_time` in milliseconds since 1970 (UTC)."""

    driver_id: int
    event_time: int
    tip: float


class Tips(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The sum of a driver's tips in the hour that ends then."""

    driver_id: int
    window_end_ms: int
    tips: float


class HourlyTips(KeyedProcess[Fare, Tips]):
    """Keeps a sum for each open hour of a driver, until the watermark reaches its end."""

    key = "driver_id"
    time = "event_time"
    hold = False  # As the peers, which hand events over as they come.
    sums: MapState[int, float]

    def on_event(self, event: Fare, ctx: Context[Tips]) -> None:
        """Add the tip to its hour."""
        end = event.event_time - event.event_time % HOUR + HOUR
        before = self.sums.get(end)
        if before is None:
            before = 0.0
            ctx.timers.event.register(end)
        self.sums[end] = before + event.tip

    def on_timer(self, at: int, ctx: Context[Tips]) -> None:
        """The hour is over."""
        ctx.emit(Tips(ctx.key, at, self.sums.pop(at)))
