"""Rules and events that the core of process functions is measured with."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final

import msgspec

from rivermark.process import Context, KeyedProcess, MapState, ValueState
from rivermark.process.windows import Tumbling, WindowAggregate, WindowContext

HOUR: Final = 3_600_000
TWO_HOURS: Final = 2 * HOUR


class Ride(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """START or END of a ride."""

    ride_id: int
    is_start: bool
    at: int
    driver: int


class LongRide(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A ride of more than two hours."""

    ride_id: int
    at: int


class LongRides(KeyedProcess[Ride, LongRide]):
    """Keeps the first event of each ride until the other comes or two hours have passed."""

    key = "ride_id"
    time = "at"
    first: ValueState[Ride]

    def on_event(self, event: Ride, ctx: Context[LongRide]) -> None:
        """Pair the two events."""
        first = self.first.value
        if first is None:
            self.first.value = event
            ctx.timers.event.register(event.at + TWO_HOURS)
            return
        ctx.timers.event.delete(first.at + TWO_HOURS)
        self.first.clear()
        start, end = (first, event) if first.is_start else (event, first)
        if end.at - start.at > TWO_HOURS:
            ctx.emit(LongRide(event.ride_id, start.at + TWO_HOURS))

    def on_timer(self, at: int, ctx: Context[LongRide]) -> None:
        """Two hours have passed."""
        first = self.first.value
        if first is not None and first.is_start:
            ctx.emit(LongRide(first.ride_id, at))
        self.first.clear()


class LongRidesByTime(LongRides):
    """In order of event time within a batch."""

    order = "event_time"


class LongRidesHeld(LongRidesByTime):
    """In order of event time altogether."""

    hold = True


class LongRidesCareful(LongRides):
    """With dead letters: each event can be taken back."""

    dead_letter = True


class Reading(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A temperature."""

    sensor: int
    at: int
    degrees: float


class Jump(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A difference of more than 1.7 degrees to the reading before."""

    sensor: int
    degrees: float
    difference: float


class Jumps(KeyedProcess[Reading, Jump]):
    """Keeps the last reading of each sensor for an hour."""

    key = "sensor"
    time = "at"
    last: ValueState[Reading]

    def on_event(self, event: Reading, ctx: Context[Jump]) -> None:
        """Compare with the last one."""
        last = self.last.value
        timers = ctx.timers.event
        if last is not None:
            timers.delete(last.at + HOUR)
            difference = abs(event.degrees - last.degrees)
            if difference > 1.7:
                ctx.emit(Jump(event.sensor, event.degrees, difference))
        self.last.value = event
        timers.register(event.at + HOUR)

    def on_timer(self, at: int, ctx: Context[Jump]) -> None:
        """An hour of silence."""
        self.last.clear()


class Fare(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A tip."""

    driver: int
    at: int
    tip: Decimal


class Tips(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Tips of a driver in the hour that ends at `end`."""

    driver: int
    end: int
    tips: Decimal


class TipsByHand(KeyedProcess[Fare, Tips]):
    """Keeps a sum per open hour of a driver."""

    key = "driver"
    time = "at"
    sums: MapState[int, Decimal]

    def on_event(self, event: Fare, ctx: Context[Tips]) -> None:
        """Add the tip to its hour."""
        end = event.at - event.at % HOUR + HOUR
        sums = self.sums
        before = sums.get(end)
        if before is None:
            sums[end] = event.tip
            ctx.timers.event.register(end)
        else:
            sums[end] = before + event.tip

    def on_timer(self, at: int, ctx: Context[Tips]) -> None:
        """The hour is over."""
        ctx.emit(Tips(ctx.key, at, self.sums.pop(at)))


class TipsByWindow(WindowAggregate[Fare, Decimal, Tips]):
    """The same with the window engine."""

    key = "driver"
    time = "at"
    windows = Tumbling(timedelta(hours=1))
    late = None

    def update(self, value: Decimal | None, event: Fare) -> Decimal:
        """Add the tip."""
        return event.tip if value is None else value + event.tip

    def on_window(self, value: Decimal, ctx: WindowContext[Tips]) -> None:
        """The hour is over."""
        ctx.emit(Tips(ctx.key, ctx.window.end, value))


@dataclass(frozen=True)
class Workload:
    """A rule and its events; `events(count, keys)` has about `keys` of them live at a time."""

    process: Callable[[], KeyedProcess[Any, Any]]
    events: Callable[[int, int], Iterator[Any]]
    delay: int = 60_000

    def time_of(self, row: Any) -> int:
        """Event time."""
        at: int = row.at
        return at

    def open_keys(self, keys: int) -> list[Any]:
        """One event for each of many keys, which all stay live."""
        return [Ride(n, True, n, n % 10_000) for n in range(keys)]

    def again(self, row: Any) -> Any:
        """The event that ends what `row` began."""
        return Ride(row.ride_id, False, row.at + 60_000, row.driver)


def rides(count: int, keys: int) -> Iterator[Ride]:
    """Rides of 1 to 50 minutes, one in fifty much longer; about `keys` under way at a time."""
    draw = random.Random(1)
    mean = 25 * 60_000
    arrivals = []
    for ride in range(count // 2):
        start = ride * mean // keys
        lasts = 9_000_000 if draw.random() < 0.02 else draw.randint(60_000, 2 * mean)
        for is_start, at in ((True, start), (False, start + lasts)):
            arrivals.append((at + draw.randint(0, 59_999), Ride(ride, is_start, at, ride % 10_000)))
    arrivals.sort(key=lambda each: each[0])
    for _, event in arrivals:
        yield event


def readings(count: int, keys: int) -> Iterator[Reading]:
    """Readings of every sensor in turn, about one a minute each."""
    draw = random.Random(2)
    for n in range(count):
        at = n * 60_000 // keys + draw.randint(0, 59_999)
        yield Reading(draw.randrange(keys), at, draw.randint(60, 68) / 4)


def fares(count: int, keys: int) -> Iterator[Fare]:
    """Fares of every driver, about five an hour each."""
    draw = random.Random(3)
    for n in range(count):
        at = n * HOUR // (5 * keys) + draw.randint(0, 59_999)
        yield Fare(draw.randrange(keys), at, Decimal(draw.randint(0, 2_000)) / 100)


WORKLOADS: Final = {
    "long_rides": Workload(LongRides, rides),
    "long_rides_by_time": Workload(LongRidesByTime, rides),
    "long_rides_held": Workload(LongRidesHeld, rides),
    "long_rides_dead_letter": Workload(LongRidesCareful, rides),
    "temperature_jumps": Workload(Jumps, readings),
    "hourly_tips_by_hand": Workload(TipsByHand, fares),
    "hourly_tips_by_window": Workload(TipsByWindow, fares),
}
