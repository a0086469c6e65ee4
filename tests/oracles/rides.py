"""The taxi tables, computed from the landed ride and fare files."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

from tests.oracles.landed import Event, accept, once, window_start

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


class TaxiOracle:
    """What was landed below a landing root, and what the platform must make of it.

    With a `lateness` of years it knows everything, however late it came.
    """

    def __init__(self, landing: Path, lateness: timedelta = MINUTE) -> None:
        self.rides = accept(landing / "taxi/rides", lateness)
        self.fares = accept(landing / "taxi/fares", lateness)
        self.unique_rides = once(self.rides.admitted, "ride_id", "is_start")
        self.clean_fares = once(self.fares.admitted, "ride_id")
        self.clean_rides = [r for r in self.unique_rides if inside(r)]
        self.rides_outside = [r for r in self.unique_rides if not inside(r)]

    def cells(self) -> list[tuple[int, bool, int, int]]:
        """Ride id, start mark, start and end cell of each cleansed event."""
        return sorted(
            (
                r["ride_id"],
                r["is_start"],
                cell(float(r["start_lon"]), float(r["start_lat"])),
                cell(float(r["end_lon"]), float(r["end_lat"])),
            )
            for r in self.clean_rides
        )

    def driver_tips(self) -> dict[tuple[datetime, int], Decimal]:
        """Tips by end of hour and driver, of all hours whether final or not."""
        sums: dict[tuple[datetime, int], Decimal] = defaultdict(Decimal)
        for fare in self.clean_fares:
            end = window_start(fare["event_time"], HOUR) + HOUR
            sums[end, fare["driver_id"]] += fare["tip"]
        return dict(sums)

    def winners(self) -> dict[datetime, tuple[int, Decimal]]:
        """Driver and tips of the best by end of hour; the lowest id of equals."""
        best: dict[datetime, tuple[int, Decimal]] = {}
        for (end, driver), tips in sorted(self.driver_tips().items()):
            if end not in best or tips > best[end][1]:
                best[end] = (driver, tips)
        return best

    def longest_rides(self, final: datetime) -> list[tuple[datetime, int, int]]:
        """End, start cell and whole minutes of each ride that was its cell's longest of the day.

        Of rides that ended by `final`; days are those of UTC, by the end of the ride.
        """
        longest: dict[tuple[object, int], int] = {}
        found = []
        ends = [r for r in self.clean_rides if not r["is_start"] and r["event_time"] <= final]
        for ride in sorted(ends, key=lambda r: r["event_time"]):
            start = cell(float(ride["start_lon"]), float(ride["start_lat"]))
            minutes = (ride["event_time"] - ride["start_time"]) // MINUTE
            if minutes > longest.get((ride["event_time"].date(), start), -1):
                longest[ride["event_time"].date(), start] = minutes
                found.append((ride["event_time"], start, minutes))
        return sorted(found)

    def long_rides(self) -> dict[int, datetime]:
        """Moments of the alerts, by ride: two hours after a START that no END follows by then."""
        ends = {r["ride_id"]: r["event_time"] for r in self.clean_rides if not r["is_start"]}
        starts = {r["ride_id"]: r["event_time"] for r in self.clean_rides if r["is_start"]}
        due = {ride: start + 2 * HOUR for ride, start in starts.items()}
        return {ride: at for ride, at in due.items() if ride not in ends or ends[ride] > at}

    def partners(self) -> tuple[set[int], set[int], set[int]]:
        """Ids of pairs, of rides without a fare and of fares without a ride, at the end of time."""
        starts = {r["ride_id"] for r in self.clean_rides if r["is_start"]}
        fares = {f["ride_id"] for f in self.clean_fares}
        return starts & fares, starts - fares, fares - starts


def inside(ride: Event) -> bool:
    """Whether start and end lie in New York's box, borders included."""
    return in_box(ride["start_lon"], ride["start_lat"]) and in_box(ride["end_lon"], ride["end_lat"])


def in_box(lon: Decimal | float, lat: Decimal | float) -> bool:
    """Whether a place in degrees lies in New York's box, borders included."""
    west, east, south, north = map(Decimal, ("-74.05", "-73.7", "40.5", "41.0"))
    return west <= lon <= east and south <= lat <= north


def cell(lon: float, lat: float) -> int:
    """The grid cell as the training's GeoUtils numbers it."""
    x = math.floor((74.05 - abs(lon)) / 0.0014)
    y = math.floor((41.0 - lat) / 0.00125)
    return x + 250 * y


def by_id(events: Iterable[Event]) -> list[int]:
    """The ride ids of events, in order."""
    return sorted(e["ride_id"] for e in events)
