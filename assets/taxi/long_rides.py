"""Alerts for rides that last longer than two hours, as soon as event time says so.

Either event of a ride may come first, or never. The alert is due when the watermark is two hours
past the START, long before the END comes; an END that comes too late gives it at once. A ride whose
START was lost gives no alert. The training's example, and its published solution without the leak.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

from assets.taxi.cleansing import CLEAN_RIDES
from assets.taxi.ingest import PERSONAL, TAXI
from rivermark import expect
from rivermark.process import Context, KeyedProcess, Millis, Record, ValueState
from rivermark.process.spark import run_process

LIMIT: Final = timedelta(hours=2)


class Ride(Record):
    """START or END of a ride."""

    ride_id: int
    is_start: bool
    event_time: Millis
    taxi_id: int
    driver_id: int


class LongRide(Record):
    """Rides inside the city that had not ended two hours after their start."""

    ride_id: int
    taxi_id: int
    driver_id: int
    start_time: Millis
    alert_time: Annotated[Millis, "When the ride had lasted two hours (UTC)."]


class LongRides(KeyedProcess[Ride, LongRide]):
    """Keeps the first event of each ride; the other one, or a timer two hours later, clears it.

    Whatever the batches, the alerts are the same: an END of a short ride is never behind the
    watermark that fires the timer, and the END of a long one gives the alert that the timer would.
    """

    key = "ride_id"
    time = "event_time"
    # By its nature the result depends on no cut, and an alert need not wait for the watermark.
    hold = False

    first: ValueState[Ride]

    def __init__(self, limit: timedelta = LIMIT) -> None:
        # At most the margin by which the days of the stream overlap.
        self.limit = limit // timedelta(milliseconds=1)

    def on_event(self, event: Ride, ctx: Context[LongRide]) -> None:
        """Keep the first event; compare the second with it."""
        first = self.first.value
        if first is None:
            self.first.value = event
            ctx.timers.event.register(event.event_time + self.limit)
            return
        ctx.timers.event.delete(first.event_time + self.limit)
        self.first.clear()
        start, end = (first, event) if first.is_start else (event, first)
        if end.event_time > start.event_time + self.limit:
            self.alert(start, ctx)

    def on_timer(self, at: int, ctx: Context[LongRide]) -> None:
        """Alert where the other event did not come within two hours."""
        first = self.first.value
        self.first.clear()
        if first is not None and first.is_start:
            self.alert(first, ctx)

    def alert(self, start: Ride, ctx: Context[LongRide]) -> None:
        """Emit a long ride."""
        at = start.event_time + self.limit
        ctx.emit(LongRide(start.ride_id, start.taxi_id, start.driver_id, start.event_time, at))


LONG_RIDES: Final = TAXI.stream(
    "taxi/long_rides",
    LongRide,
    reads=CLEAN_RIDES,
    build=run_process(LongRides),
    keys="ride_id",
    event_time="alert_time",
    personal=PERSONAL,
    margin=LIMIT,
    parameters={"limit": LIMIT},
    expect=[
        expect.unique("ride_id"),
        expect.not_null("taxi_id"),
        expect.no_rows_where(
            f"alert_time <> start_time + INTERVAL {LIMIT.total_seconds():.0f} SECONDS",
            name="an alert comes after two hours",
        ),
    ],
)
