"""A generated world of temperature sensors, each reading a pure function of seed, sensor and time.

Every sensor reads once a period. Its temperature swings slowly around a mean of its own, which
rises from sensor to sensor from below freezing to beyond 100 degrees Fahrenheit, with some noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from hashlib import blake2b
from typing import Final

from rivermark.model.time import EPOCH

COLDEST: Final = 25.0
WARMER_BY: Final = 4.0
SWING: Final = 10.0
SWING_TIME: Final = timedelta(minutes=10)
NOISE: Final = 1.5


@dataclass(frozen=True, slots=True)
class Reading:
    """One temperature (Fahrenheit, four places) of one sensor; its event time is in UTC."""

    sensor: int
    sequence: int
    event_time: datetime
    temperature: Decimal

    @property
    def sensor_id(self) -> str:
        """The sensor's name: sensor_1 and so on."""
        return f"sensor_{self.sensor}"

    @property
    def key(self) -> tuple[int, ...]:
        """What two copies of the same reading share."""
        return (self.sensor, self.sequence)


@dataclass(frozen=True, slots=True, kw_only=True)
class SensorWorld:
    """`sensors` sensors, each reading every `period`, not all at the same instant.

    A reading's `sequence` is the number of its period since 1970, so it goes on rising however
    often the world is restarted.
    """

    sensors: int = 20
    period: timedelta = timedelta(seconds=1)
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse a world without readings, and periods that microseconds cannot share out."""
        if self.sensors < 1 or self.period < timedelta(milliseconds=self.sensors):
            raise ValueError(
                f"{self.sensors} sensors each {self.period}: at least one sensor, and a "
                "millisecond of the period for each"
            )

    def readings(self, beginning: datetime, length: timedelta | None = None) -> Iterator[Reading]:
        """The readings from `beginning` on, in order of event time; without end if no length."""
        first = -((EPOCH - beginning) // self.period)
        end = None if length is None else beginning + length
        sequence = first
        while end is None or EPOCH + sequence * self.period < end:
            for sensor in range(1, self.sensors + 1):
                at = EPOCH + sequence * self.period + (sensor - 1) * self.period / self.sensors
                if end is None or at < end:
                    yield Reading(sensor, sequence, at, self._temperature(sensor, sequence, at))
            sequence += 1

    def _temperature(self, sensor: int, sequence: int, at: datetime) -> Decimal:
        turn = (at - EPOCH) / SWING_TIME + self._share(sensor, 0)
        mean = COLDEST + WARMER_BY * sensor
        noise = NOISE * (2 * self._share(sensor, sequence) - 1)
        degrees = mean + SWING * math.sin(2 * math.pi * turn) + noise
        return Decimal(f"{degrees:.4f}")

    def _share(self, sensor: int, sequence: int) -> float:
        """A number from 0 to 1 (excluded) of its own for each seed, sensor and sequence."""
        text = f"{self.seed}/{sensor}/{sequence}".encode()
        return int.from_bytes(blake2b(text, digest_size=6).digest()) / (1 << 48)
