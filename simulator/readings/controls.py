"""Generated controls of the alerts on readings: thresholds and smoke levels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from itertools import count
from typing import Final

from rivermark.model.time import EPOCH

SENT_EVERY: Final = timedelta(seconds=5)
VERSION_TIME: Final = timedelta(minutes=2)
"""How long a version of the thresholds lasts in the generated world."""

SMOKE_SHARE: Final = 212
"""Of a thousand seconds so many have smoke: as often as a standard gaussian is above 0.8."""


@dataclass(frozen=True, slots=True)
class ThresholdUpdate:
    """A threshold as it is sent; sensor 0 stands for all that have none of their own."""

    sensor: int
    event_time: datetime
    degrees: Decimal
    version: int

    @property
    def sensor_id(self) -> str:
        """The sensor's name; `*` for all that have none of their own."""
        return f"sensor_{self.sensor}" if self.sensor else "*"

    @property
    def key(self) -> tuple[int, ...]:
        """The identity that two copies share."""
        return (self.sensor, (self.event_time - EPOCH) // timedelta(milliseconds=1))


@dataclass(frozen=True, slots=True)
class SmokeUpdate:
    """A smoke level as it is sent."""

    event_time: datetime
    level: str

    @property
    def key(self) -> tuple[int, ...]:
        """The identity that two copies share."""
        return ((self.event_time - EPOCH) // timedelta(milliseconds=1),)


def thresholds(beginning: datetime, length: timedelta | None = None) -> Iterator[ThresholdUpdate]:
    """Every five seconds the threshold of all, which each version changes, and of two sensors."""
    for at in _instants(beginning, length, SENT_EVERY):
        version = (at - EPOCH) // VERSION_TIME
        for_all = Decimal("1.7") if version % 2 else Decimal("1.1")
        yield ThresholdUpdate(0, at, for_all, version)
        yield ThresholdUpdate(1, at, Decimal("2.5"), version)
        yield ThresholdUpdate(2, at, Decimal(0), version)


def smoke_levels(
    beginning: datetime, length: timedelta | None = None, seed: int = 0
) -> Iterator[SmokeUpdate]:
    """A level each second, high in about a fifth of them."""
    for at in _instants(beginning, length, timedelta(seconds=1)):
        second = (at - EPOCH) // timedelta(seconds=1)
        drawn = int.from_bytes(blake2b(f"{seed}/{second}".encode(), digest_size=6).digest())
        yield SmokeUpdate(at, "High" if drawn % 1_000 < SMOKE_SHARE else "Low")


def _instants(
    beginning: datetime, length: timedelta | None, every: timedelta
) -> Iterator[datetime]:
    """The multiples of `every` since 1970, from `beginning` on."""
    first = -((EPOCH - beginning) // every)
    for number in count(first):
        at = EPOCH + number * every
        if length is not None and at >= beginning + length:
            return
        yield at
