"""What the training's generator invents for a ride, as a pure function of the ride's id.

The rules are those of `DataGenerator` in apache/flink-training: each field draws from a sequence
seeded with the ride id alone (the end's coordinates with id + 42), redrawn until it lies within its
bounds. A ride and its fare therefore agree without ever being joined.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from simulator.taxi.java_random_many import JavaRandoms

FIRST_DRIVER: Final = 2_013_000_000
DRIVERS: Final = 200
END_SEED_OFFSET: Final = 42
TOLL_EVERY: Final = 10

# Single precision from here on: the source computes coordinates in float.
_EIGHT: Final = np.float32(8)
_TWO: Final = np.float32(2)
_MARGIN: Final = float(np.float32(0.1))
LONGITUDES: Final = (np.float32(-74.05 - 0.1), np.float32(-73.7 + _MARGIN))
LATITUDES: Final = (np.float32(40.5 - 0.1), np.float32(41.0 + _MARGIN))


@dataclass(frozen=True, slots=True)
class Bell:
    """A normal distribution cut to bounds, both included."""

    low: float
    high: float
    mean: float
    deviation: float


PASSENGERS: Final = Bell(1, 4, mean=2.5, deviation=3 / 8)
MINUTES: Final = Bell(0, 600, mean=20, deviation=40)
TIP: Final = Bell(0, 60, mean=10, deviation=15)
TOLLS: Final = Bell(0, 5, mean=2.5, deviation=5 / 8)


@dataclass(frozen=True, slots=True)
class RideFields:
    """The fields of consecutive rides: coordinates in degrees, money in whole dollars."""

    driver_id: list[int]
    minutes: list[int]
    passenger_count: list[int]
    tip: list[int]
    tolls: list[int]
    start_lon: list[float]
    start_lat: list[float]
    end_lon: list[float]
    end_lat: list[float]


@lru_cache(maxsize=16)
def ride_fields(ride_ids: range) -> RideFields:
    """The fields of the rides with these ids, in their order.

    The last few ranges are remembered, so that rides and fares made side by side draw once.
    """
    ids = np.array(ride_ids, dtype=np.int64)
    at_start, at_end = ids, ids + END_SEED_OFFSET
    tolls = np.zeros(len(ids), dtype=np.int64)
    with_toll = ids % TOLL_EVERY == 0
    tolls[with_toll] = _whole(ids[with_toll], TOLLS)
    return RideFields(
        driver_id=(FIRST_DRIVER + JavaRandoms(ids).next_int(DRIVERS)).tolist(),
        minutes=_whole(ids, MINUTES).tolist(),
        passenger_count=_whole(ids, PASSENGERS).tolist(),
        tip=_whole(ids, TIP).tolist(),
        tolls=tolls.tolist(),
        start_lon=_degrees(at_start, *LONGITUDES).tolist(),
        start_lat=_degrees(at_start, *LATITUDES).tolist(),
        end_lon=_degrees(at_end, *LONGITUDES).tolist(),
        end_lat=_degrees(at_end, *LATITUDES).tolist(),
    )


def _whole(seeds: NDArray[np.int64], bell: Bell) -> NDArray[np.int64]:
    # Java's Math.round: to the nearest, halves upwards.
    drawn = _within(
        bell.low,
        bell.high,
        seeds,
        lambda gaussian: np.floor(bell.deviation * gaussian + bell.mean + 0.5),
    )
    return drawn.astype(np.int64)


def _degrees(seeds: NDArray[np.int64], low: np.float32, high: np.float32) -> NDArray[np.float64]:
    mean = (low + high) / _TWO
    deviation = float((high - low) / _EIGHT)
    # The product is double, the sum with the mean is float.
    return _within(
        low, high, seeds, lambda gaussian: (deviation * gaussian).astype(np.float32) + mean
    )


def _within(
    low: float | np.float32,
    high: float | np.float32,
    seeds: NDArray[np.int64],
    value: Callable[[NDArray[np.float64]], NDArray[Any]],
) -> NDArray[np.float64]:
    """From each sequence the first value of a gaussian number that lies within the bounds."""
    values = np.empty(len(seeds))
    open_ = np.arange(len(seeds))
    randoms = JavaRandoms(seeds)
    while len(open_):
        drawn = value(randoms.next_gaussian())
        fits = (drawn >= low) & (drawn <= high)
        values[open_[fits]] = drawn[fits]
        open_ = open_[~fits]
        randoms.keep(~fits)
    return values
