"""What the taxi tables must hold, computed from admitted events in plain Python.

Independent of the pipeline on purpose: no Spark, no shared expressions. Events are those that the
door admits (simulator.taxi.door), each once.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from simulator.taxi.city import grid_cell, in_new_york
from simulator.taxi.fares import FareEvent
from simulator.taxi.rides import RideEvent

HOUR: Final = timedelta(hours=1)
LONG: Final = timedelta(hours=2)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def rides_in_new_york(rides: Iterable[RideEvent]) -> list[RideEvent]:
    """The events whose start and end both lie in the box, borders included."""
    return [
        ride
        for ride in rides
        if in_new_york(ride.start_lon, ride.start_lat) and in_new_york(ride.end_lon, ride.end_lat)
    ]


def cells_of(ride: RideEvent) -> tuple[int, int]:
    """The grid cells of the ride's start and end."""
    return grid_cell(ride.start_lon, ride.start_lat), grid_cell(ride.end_lon, ride.end_lat)


@dataclass(frozen=True, slots=True, order=True)
class LongestRide:
    """The longest ride that began in a cell, in whole minutes; of equals the lowest ride id."""

    cell: int
    minutes: int
    ride_id: int


def longest_ride_per_cell(rides: Iterable[RideEvent]) -> list[LongestRide]:
    """For each start cell of finished rides the longest one, by cell."""
    longest: dict[int, LongestRide] = {}
    for ride in rides:
        if ride.end_time is None:
            continue
        cell, _ = cells_of(ride)
        minutes = (ride.end_time - ride.start_time) // timedelta(minutes=1)
        known = longest.get(cell)
        if known is None or (minutes, -ride.ride_id) > (known.minutes, -known.ride_id):
            longest[cell] = LongestRide(cell, minutes, ride.ride_id)
    return sorted(longest.values())


@dataclass(frozen=True, slots=True, order=True)
class HourlyTips:
    """The tips of one driver in the hour that ends (excluded) at `hour_end`, in US dollars."""

    hour_end: datetime
    driver_id: int
    tips: Decimal


def hourly_tips(fares: Iterable[FareEvent]) -> list[HourlyTips]:
    """Tips per driver and hour of UTC, also where their sum is zero, by hour and driver."""
    sums: defaultdict[tuple[datetime, int], Decimal] = defaultdict(Decimal)
    for fare in fares:
        hour_end = EPOCH + ((fare.event_time - EPOCH) // HOUR + 1) * HOUR
        sums[hour_end, fare.driver_id] += fare.tip
    return sorted(HourlyTips(hour, driver, tips) for (hour, driver), tips in sums.items())


def hourly_winners(fares: Iterable[FareEvent]) -> list[HourlyTips]:
    """Per hour the driver with the largest tips, of equals the lowest id, by hour."""
    best: dict[datetime, HourlyTips] = {}
    for row in hourly_tips(fares):
        # Drivers come by rising id, so an equal later one does not replace the first.
        if row.hour_end not in best or row.tips > best[row.hour_end].tips:
            best[row.hour_end] = row
    return sorted(best.values())


def hours_closed(rows: Iterable[HourlyTips], watermark: datetime) -> list[HourlyTips]:
    """The rows of hours that are over by the watermark: what a live stream has published."""
    return [row for row in rows if row.hour_end <= watermark]


@dataclass(frozen=True, slots=True)
class RidesAndFares:
    """STARTs and fares matched on ride id, each list by ride id."""

    pairs: list[tuple[RideEvent, FareEvent]]
    unmatched_rides: list[RideEvent]
    unmatched_fares: list[FareEvent]


def match(rides: Iterable[RideEvent], fares: Iterable[FareEvent]) -> RidesAndFares:
    """The START of each ride with its fare, and what is left over once nothing more can come.

    While a stream lives, a left-over counts as unmatched only after its limit (`waited_out`).
    """
    starts = {ride.ride_id: ride for ride in rides if ride.is_start}
    paid = {fare.ride_id: fare for fare in fares}
    return RidesAndFares(
        pairs=[(starts[i], paid[i]) for i in sorted(starts.keys() & paid.keys())],
        unmatched_rides=[starts[i] for i in sorted(starts.keys() - paid.keys())],
        unmatched_fares=[paid[i] for i in sorted(paid.keys() - starts.keys())],
    )


def waited_out(event_time: datetime, limit: timedelta, watermark: datetime) -> bool:
    """Whether a waiting ride or fare has waited longer than `limit` by the watermark."""
    return event_time + limit < watermark


def long_rides(rides: Iterable[RideEvent], watermark: datetime | None = None) -> list[int]:
    """Ids of rides that lasted more than two hours, or had no END two hours after their START.

    A START without END alerts when the watermark reaches two hours after it; None means the end of
    time. An END without START alerts when it says that the ride was too long.
    """
    open_starts: dict[int, datetime] = {}
    ended: dict[int, bool] = {}
    for ride in rides:
        if ride.end_time is None:
            open_starts[ride.ride_id] = ride.start_time
        else:
            ended[ride.ride_id] = ride.end_time - ride.start_time > LONG
    too_long = {ride_id for ride_id, is_long in ended.items() if is_long}
    silent = {
        ride_id
        for ride_id, start in open_starts.items()
        if ride_id not in ended and (watermark is None or watermark >= start + LONG)
    }
    return sorted(too_long | silent)
