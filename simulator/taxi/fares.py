"""Fare events of the generated world: one per ride, at the ride's start."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Final, Literal

from simulator.taxi.clock import TRAINING_CLOCK, RideClock
from simulator.taxi.ride_fields import ride_fields
from simulator.taxi.rides import drawn_together

BASE_FARE: Final = 3
FARE_PER_MINUTE: Final = 1


@dataclass(frozen=True, slots=True)
class FareEvent:
    """What one ride cost: US dollars with two places; its event time is the ride's start (UTC)."""

    ride_id: int
    taxi_id: int
    driver_id: int
    event_time: datetime
    payment_type: Literal["CARD", "CASH"]
    tip: Decimal
    tolls: Decimal
    total_fare: Decimal

    @property
    def key(self) -> tuple[int]:
        """What two copies of the same fare share."""
        return (self.ride_id,)


def fares(first: int, last: int | None, clock: RideClock = TRAINING_CLOCK) -> Iterator[FareEvent]:
    """The fares of the rides from `first` to `last` (both included), without end if it is None."""
    for ride_ids in drawn_together(first, last):
        fields = ride_fields(ride_ids)
        for ride_id, driver, minutes, tip, tolls in zip(
            ride_ids, fields.driver_id, fields.minutes, fields.tip, fields.tolls, strict=True
        ):
            yield FareEvent(
                ride_id=ride_id,
                taxi_id=driver,
                driver_id=driver,
                event_time=clock.start_of(ride_id),
                payment_type="CARD" if ride_id % 2 == 0 else "CASH",
                tip=_dollars(tip),
                tolls=_dollars(tolls),
                total_fare=_dollars(BASE_FARE + FARE_PER_MINUTE * minutes + tip + tolls),
            )


@cache
def _dollars(whole: int) -> Decimal:
    return Decimal(f"{whole}.00")
