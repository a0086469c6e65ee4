"""Rules and events that the core of process functions is measured with.

The rules are those that are measured beside the peers, and variants of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from bench.peers.jobs.hourly_tips import Fare, HourlyTips, Tips
from bench.peers.jobs.jumps import Jumps, Reading
from bench.peers.jobs.long_rides import LongRides, Ride
from bench.peers.workloads import HOUR, MINUTE
from rivermark.process import KeyedProcess
from rivermark.process.windows import Tumbling, WindowAggregate, WindowContext


class LongRidesByTime(LongRides):
    """In order of event time within a batch."""

    order = "event_time"


class LongRidesHeld(LongRidesByTime):
    """In order of event time altogether."""

    hold = True


class LongRidesCareful(LongRides):
    """With dead letters: each event can be taken back."""

    dead_letter = True


class TipsByWindow(WindowAggregate[Fare, float, Tips]):
    """Hourly tips by a declared window."""

    key = "driver_id"
    time = "event_time"
    windows = Tumbling(timedelta(hours=1))
    late = None

    def update(self, value: float | None, event: Fare) -> float:
        """Add the tip."""
        return event.tip if value is None else value + event.tip

    def on_window(self, value: float, ctx: WindowContext[Tips]) -> None:
        """Emit the sum of the hour."""
        ctx.emit(Tips(ctx.key, ctx.window.end, value))


@dataclass(frozen=True)
class Workload:
    """A rule and its events; `events(count, keys)` has about `keys` of them live at a time."""

    process: Callable[[], KeyedProcess[Any, Any]]
    events: Callable[[int, int], Iterator[Any]]
    delay: int = MINUTE


def rides(count: int, keys: int) -> Iterator[Ride]:
    """Rides of 1 to 50 minutes, one in fifty much longer; about `keys` under way at a time."""
    draw = random.Random(1)
    mean = 25 * MINUTE
    arrivals = []
    for ride in range(count // 2):
        start = ride * mean // keys
        lasts = 9_000_000 if draw.random() < 0.02 else draw.randint(MINUTE, 2 * mean)
        for is_start, at in ((True, start), (False, start + lasts)):
            arrivals.append((at + draw.randint(0, 59_999), Ride(ride, is_start, at, ride % 10_000)))
    arrivals.sort(key=lambda each: each[0])
    for _, event in arrivals:
        yield event


def open_rides(keys: int) -> list[Ride]:
    """The START of each of so many rides, which all stay open."""
    return [Ride(n, True, n, n % 10_000) for n in range(keys)]


def end_of(ride: Ride) -> Ride:
    """The END of a ride, a minute after its START."""
    return Ride(ride.ride_id, False, ride.event_time + MINUTE, ride.driver_id)


def readings(count: int, keys: int) -> Iterator[Reading]:
    """Readings of every sensor in turn, about one a minute each."""
    draw = random.Random(2)
    for n in range(count):
        at = n * MINUTE // keys + draw.randint(0, 59_999)
        yield Reading(draw.randrange(keys), at, draw.randint(60, 160) / 4)


def fares(count: int, keys: int) -> Iterator[Fare]:
    """Fares of every driver, about five an hour each."""
    draw = random.Random(3)
    for n in range(count):
        at = n * HOUR // (5 * keys) + draw.randint(0, 59_999)
        yield Fare(draw.randrange(keys), at, draw.randint(0, 80) / 4)


WORKLOADS: Final = {
    "long_rides": Workload(LongRides, rides),
    "long_rides_by_time": Workload(LongRidesByTime, rides),
    "long_rides_held": Workload(LongRidesHeld, rides),
    "long_rides_dead_letter": Workload(LongRidesCareful, rides),
    "temperature_jumps": Workload(Jumps, readings),
    "hourly_tips_by_hand": Workload(HourlyTips, fares),
    "hourly_tips_by_window": Workload(TipsByWindow, fares),
}
