"""Java's `java.util.Random`, so that worlds defined on it can be rebuilt without a JVM.

A linear congruential generator of 48 bits (multiplier 0x5DEECE66D, increment 11), as the class's
specification states it. The sequence of a seed is part of Java's contract and does not change with
its version.
"""

from collections.abc import MutableSequence
from typing import Any, Final

MULTIPLIER: Final = 0x5DEECE66D
INCREMENT: Final = 0xB
STATE_BITS: Final = 48
STATE_MASK: Final = (1 << STATE_BITS) - 1


class JavaRandom:
    """One sequence of pseudo-random numbers, the same as that of `new java.util.Random(seed)`."""

    def __init__(self, seed: int) -> None:
        self._state = (seed ^ MULTIPLIER) & STATE_MASK

    def _next(self, bits: int) -> int:
        self._state = (self._state * MULTIPLIER + INCREMENT) & STATE_MASK
        return self._state >> (STATE_BITS - bits)

    def next_int(self, bound: int) -> int:
        """A whole number from 0 (included) to `bound` (excluded), at most 2**31 - 1."""
        if not 0 < bound < 1 << 31:
            raise ValueError(f"bound must be between 1 and 2**31 - 1, not {bound}")
        drawn = self._next(31)
        if bound & (bound - 1) == 0:
            return (bound * drawn) >> 31
        # Java detects the incomplete last run of `bound` numbers by an overflow of 32 bits.
        while drawn - drawn % bound + (bound - 1) >= 1 << 31:
            drawn = self._next(31)
        return drawn % bound

    def shuffle(self, items: MutableSequence[Any]) -> None:
        """Shuffle in place as `java.util.Collections.shuffle(items, this)` does."""
        for size in range(len(items), 1, -1):
            other = self.next_int(size)
            items[size - 1], items[other] = items[other], items[size - 1]
