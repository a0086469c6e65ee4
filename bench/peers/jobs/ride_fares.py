"""The START of each ride beside its fare, as a process function of two inputs."""

from __future__ import annotations

from typing import Final

import msgspec

from bench.peers.workloads import MINUTE
from rivermark.process import Context, Input, KeyedProcess, ValueState

NEAR: Final = 5 * MINUTE


class Start(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The START of a ride; `event_time` in milliseconds since 1970 (UTC)."""

    ride_id: int
    driver_id: int
    event_time: int
    start_lon: float
    start_lat: float
    passenger_count: int


class Paid(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fare of a ride; `event_time` in milliseconds since 1970 (UTC)."""

    ride_id: int
    event_time: int
    payment_type: str
    tip: float
    tolls: float
    total_fare: float


class RideFare(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A ride beside its fare."""

    ride_id: int
    driver_id: int
    event_ms: int
    start_lon: float
    start_lat: float
    passenger_count: int
    payment_type: str
    tip: float
    tolls: float
    total_fare: float


class RideFares(KeyedProcess[Start | Paid, RideFare]):
    """Keeps what came first of a ride until the other comes, or five minutes have passed.

    A ride has one START and one fare here, so one timer at a time.
    """

    rides = Input(Start, key="ride_id", time="event_time")
    fares = Input(Paid, key="ride_id", time="event_time")
    hold = False  # As the peers, which hand events over as they come.
    start: ValueState[Start]
    fare: ValueState[Paid]

    def on_rides(self, start: Start, ctx: Context[RideFare]) -> None:
        """Pair a START with the fare that waits, or let it wait."""
        fare = self.fare.value
        if fare is None:
            self.start.value = start
            ctx.timers.event.register(start.event_time + NEAR)
            return
        ctx.timers.event.delete(fare.event_time + NEAR)
        self.fare.clear()
        self.pair(start, fare, ctx)

    def on_fares(self, fare: Paid, ctx: Context[RideFare]) -> None:
        """Pair a fare with the START that waits, or let it wait."""
        start = self.start.value
        if start is None:
            self.fare.value = fare
            ctx.timers.event.register(fare.event_time + NEAR)
            return
        ctx.timers.event.delete(start.event_time + NEAR)
        self.start.clear()
        self.pair(start, fare, ctx)

    def pair(self, start: Start, fare: Paid, ctx: Context[RideFare]) -> None:
        """Give the two as one row, where they are near."""
        if abs(fare.event_time - start.event_time) <= NEAR:
            ctx.emit(
                RideFare(
                    start.ride_id,
                    start.driver_id,
                    start.event_time,
                    start.start_lon,
                    start.start_lat,
                    start.passenger_count,
                    fare.payment_type,
                    fare.tip,
                    fare.tolls,
                    fare.total_fare,
                )
            )

    def on_timer(self, at: int, ctx: Context[RideFare]) -> None:
        """Nothing came in time."""
        self.start.clear()
        self.fare.clear()
