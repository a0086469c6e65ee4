"""Alerts for rides that last longer than two hours, as soon as event time says so.

Either event of a ride may come first, or never. The alert is due when the watermark is two hours
past the START, long before the END comes; an END that lies too late tells it at once. A ride whose
START was lost gives no alert. The training's example, and its published solution without the leak.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from assets.taxi.cleansing import CLEAN_RIDES
from assets.taxi.event_suites import LONG_RIDES_SUITE
from assets.taxi.ingest import FIRST_DAY, GROUP, OWNERS
from rivermark.model.stream import Stream
from rivermark.model.table import Daily, Table
from rivermark.process import Context, KeyedProcess, ValueState
from rivermark.process.spark import run_process

LIMIT: Final = timedelta(hours=2)


class Ride(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """START or END of a ride; `event_time` in milliseconds since the epoch (UTC)."""

    ride_id: int
    is_start: bool
    event_time: int
    taxi_id: int
    driver_id: int


class LongRide(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A ride that had not ended at `alert_time`, two hours after its start."""

    ride_id: int
    taxi_id: int
    driver_id: int
    start_time: int
    alert_time: int


class LongRides(KeyedProcess[Ride, LongRide]):
    """Keeps the first event of each ride; the other one, or a timer two hours later, clears it.

    Whatever the batches, the alerts are the same: an END of a short ride is never behind the
    watermark that fires the timer, and the END of a long one gives the alert that the timer would.
    """

    key = "ride_id"
    time = "event_time"

    first: ValueState[Ride]

    def __init__(self, limit: timedelta = LIMIT) -> None:
        """Take the span after which a ride is long; at most that by which the stream's days lap."""
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
        """Two hours without the other event."""
        first = self.first.value
        self.first.clear()
        if first is not None and first.is_start:
            self.alert(first, ctx)

    def alert(self, start: Ride, ctx: Context[LongRide]) -> None:
        """Tell of a long ride."""
        at = start.event_time + self.limit
        ctx.emit(LongRide(start.ride_id, start.taxi_id, start.driver_id, start.event_time, at))


LONG_RIDES: Final = Stream(
    name="taxi/long_rides",
    reads=(CLEAN_RIDES,),
    build=run_process(LongRides),
    writes=Table(
        name="taxi/long_rides",
        schema=StructType(
            [
                StructField("ride_id", LongType(), True),
                StructField("taxi_id", LongType(), True),
                StructField("driver_id", LongType(), True),
                StructField("start_time", TimestampType(), True),
                StructField("alert_time", TimestampType(), True),
            ]
        ),
        description="Rides inside the city that had not ended two hours after their start.",
        event_time="alert_time",
        keys=("ride_id",),
        days=Daily(column="alert_time", start=FIRST_DAY),
        personal=("driver_id", "taxi_id"),
    ),
    description="Rides inside the city that had not ended two hours after their start.",
    group=GROUP,
    margin=LIMIT,
    parameters={"limit": LIMIT},
    suite=LONG_RIDES_SUITE,
    owners=OWNERS,
)
