"""Ride events of the generated world: each ride has a START and an END."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from simulator.taxi.clock import TRAINING_CLOCK, RideClock
from simulator.taxi.ride_fields import ride_fields

# Rides drawn at once: large enough that numpy's fixed costs vanish, small enough to start at once.
DRAWN_TOGETHER: Final = 2_000


@dataclass(frozen=True, slots=True)
class RideEvent:
    """The start or the end of one ride.

    Instants are UTC; `end_time` is None on a START, which cannot know it. Coordinates are degrees,
    single precision widened to double.
    """

    ride_id: int
    is_start: bool
    start_time: datetime
    end_time: datetime | None
    start_lon: float
    start_lat: float
    end_lon: float
    end_lat: float
    passenger_count: int
    taxi_id: int
    driver_id: int

    @property
    def event_time(self) -> datetime:
        """The start of the ride on a START, its end on an END."""
        return self.start_time if self.end_time is None else self.end_time

    @property
    def key(self) -> tuple[int, bool]:
        """What two copies of the same event share."""
        return (self.ride_id, self.is_start)


@dataclass(frozen=True, slots=True)
class Ride:
    """Both events of one ride."""

    start: RideEvent
    end: RideEvent


def rides(first: int, last: int | None, clock: RideClock = TRAINING_CLOCK) -> Iterator[Ride]:
    """The rides with ids from `first` to `last` (both included), without end if `last` is None."""
    for ride_ids in drawn_together(first, last):
        yield from _rides(ride_ids, clock)


def drawn_together(first: int, last: int | None) -> Iterator[range]:
    """Ranges of ride ids that are drawn at once, the same for rides and fares."""
    while last is None or first <= last:
        # Cut at multiples, so that rides and fares share their ranges wherever they begin.
        stop = (first // DRAWN_TOGETHER + 1) * DRAWN_TOGETHER
        if last is not None:
            stop = min(stop, last + 1)
        yield range(first, stop)
        first = stop


def _rides(ride_ids: range, clock: RideClock) -> Iterator[Ride]:
    fields = ride_fields(ride_ids)
    for ride_id, minutes, start_lon, start_lat, end_lon, end_lat, passengers, driver in zip(
        ride_ids,
        fields.minutes,
        fields.start_lon,
        fields.start_lat,
        fields.end_lon,
        fields.end_lat,
        fields.passenger_count,
        fields.driver_id,
        strict=True,
    ):
        start = RideEvent(
            ride_id=ride_id,
            is_start=True,
            start_time=clock.start_of(ride_id),
            end_time=None,
            start_lon=start_lon,
            start_lat=start_lat,
            end_lon=end_lon,
            end_lat=end_lat,
            passenger_count=passengers,
            taxi_id=driver,
            driver_id=driver,
        )
        end_time = start.start_time + timedelta(minutes=minutes)
        yield Ride(start, replace(start, is_start=False, end_time=end_time))
