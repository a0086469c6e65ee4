"""Many sequences of `java.util.Random` side by side, one per seed, advanced together in numpy.

A ride draws all its fields from sequences seeded with its id, so a thousand rides are a thousand
sequences. One at a time in Python they cost about 60 microseconds each; together less than one.
Gaussian numbers come by Marsaglia's polar method (Knuth, TAOCP 2, 3.4.1 C, algorithm P).
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from simulator.taxi.java_random import INCREMENT, MULTIPLIER, STATE_BITS, STATE_MASK
from simulator.taxi.strict_log import strict_log

DOUBLE_UNIT: Final = 1.0 / (1 << 53)
_MULTIPLIER = np.uint64(MULTIPLIER)
_INCREMENT = np.uint64(INCREMENT)
_MASK = np.uint64(STATE_MASK)


class JavaRandoms:
    """The sequences of `new java.util.Random(seed)` for an array of seeds."""

    def __init__(self, seeds: NDArray[np.int64]) -> None:
        self._state = (seeds.astype(np.uint64) ^ _MULTIPLIER) & _MASK
        self._spare: NDArray[np.float64] | None = None

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Go on with the sequences under `mask` only."""
        self._state = self._state[mask]
        if self._spare is not None:
            self._spare = self._spare[mask]

    def next_int(self, bound: int) -> NDArray[np.int64]:
        """From each sequence a whole number from 0 to `bound` (excluded), no power of two."""
        if not 0 < bound < 1 << 31 or bound & (bound - 1) == 0:
            raise ValueError(f"bound must be below 2**31 and no power of two, not {bound}")
        drawn, self._state = _next(self._state, 31)
        while (again := drawn - drawn % bound + (bound - 1) >= 1 << 31).any():
            drawn[again], self._state[again] = _next(self._state[again], 31)
        return drawn % bound

    def next_gaussian(self) -> NDArray[np.float64]:
        """From each sequence a number of the normal distribution, mean 0 and deviation 1."""
        if self._spare is not None:
            spare, self._spare = self._spare, None
            return spare
        first = np.empty(len(self._state))
        second = np.empty(len(self._state))
        open_ = np.arange(len(self._state))
        while len(open_):
            v1, state = _next_double(self._state[open_])
            v2, state = _next_double(state)
            self._state[open_] = state
            v1, v2 = 2 * v1 - 1, 2 * v2 - 1
            s = v1 * v1 + v2 * v2
            inside = (s > 0) & (s < 1)
            done = open_[inside]
            scale = np.sqrt(-2.0 * strict_log(s[inside]) / s[inside])
            first[done] = v1[inside] * scale
            second[done] = v2[inside] * scale
            open_ = open_[~inside]
        self._spare = second
        return first


def _next(state: NDArray[np.uint64], bits: int) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    # The product wraps at 64 bits; the 48 that count are right all the same.
    state = (state * _MULTIPLIER + _INCREMENT) & _MASK
    return (state >> np.uint64(STATE_BITS - bits)).astype(np.int64), state


def _next_double(
    state: NDArray[np.uint64],
) -> tuple[NDArray[np.float64], NDArray[np.uint64]]:
    high, state = _next(state, 26)
    low, state = _next(state, 27)
    return ((high << 27) + low).astype(np.float64) * DOUBLE_UNIT, state
