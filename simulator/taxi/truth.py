"""What the platform must make of the landed rides and fares, computed in plain Python.

Independent of the pipeline on purpose: no Spark, no shared expressions.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final

from rivermark.model.time import EPOCH
from simulator.taxi.admission import Admission, admit
from simulator.taxi.fares import FareEvent
from simulator.taxi.rides import RideEvent
from simulator.taxi.wire import read_fares, read_rides

HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class LandedTruth:
    """The right admission of the landed rides and fares."""

    rides: Admission[RideEvent]
    fares: Admission[FareEvent]


def truth_of(landing: Path, lateness: timedelta) -> LandedTruth:
    """Read `<landing>/taxi/rides` and `<landing>/taxi/fares` in landing order, and admit them."""
    return LandedTruth(
        rides=admit(read_rides(landing), lateness),
        fares=admit(read_fares(landing), lateness),
    )


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
    """The rows of hours that the watermark has closed: what a live stream has published."""
    return [row for row in rows if row.hour_end <= watermark]
