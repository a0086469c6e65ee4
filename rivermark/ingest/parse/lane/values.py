"""The values of lines, by their places: equal to a word, plain numbers, texts.

A plain number has digits, may have a point with digits behind it and a minus before, and has no
zero too many before. One with an exponent is looked at by itself, for doubles alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.lane.lines import (
    HIGH,
    LOW,
    Lines,
    Mask,
    Places,
    Words,
    each_byte,
    equal_bytes,
    first_byte,
    kept,
)

MOST_BYTES: Final = 24
"""Bytes of a number that is looked at."""
ZEROS: Final = each_byte(0x30)
NO_DIGIT: Final = each_byte(0x76)
WITH_EXPONENT: Final = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?[eE][+-]?[0-9]{1,2}\z"
SIGN: Final = np.uint64(ord("-") ^ ord("0"))


@dataclass
class Numbers:
    """What the texts are as numbers: which are plain ones, and where their points stand.

    `point` is the place of the point, or the end of a text without one; `whole` tells where nothing
    but zeros follows it.
    """

    plain: Mask
    digits: Places
    point: Places
    fraction: Places
    whole: Mask


def read_numbers(values: Values, point: int) -> Numbers:
    """Read the texts as numbers."""
    lengths = values.lengths
    plain: Mask = ~values.absent & (lengths > 0) & (lengths <= MOST_BYTES)
    longest = int(lengths[plain].max(initial=1))
    masks = [kept(lengths, n) for n in range(-(-longest // 8))]
    windows = values.lines.windows(values.starts, len(masks))
    words = [window & mask for window, mask in zip(windows, masks, strict=True)]
    negative = words[0] & np.uint64(0xFF) == ord("-")
    first = (words[0] >> (negative.astype(np.uint64) << np.uint64(3))) & np.uint64(0xFF)
    place = lengths.copy()
    points = np.zeros(len(lengths), np.uint8)
    rests = []
    for n, word in enumerate(words):
        if n == 0:
            word = word ^ np.where(negative, SIGN, np.uint64(0))
        word = word | (ZEROS & ~masks[n])
        digits = word ^ ZEROS
        others = (((digits & LOW) + NO_DIGIT) | digits) & HIGH
        if others.any():
            marks = equal_bytes(word, point)
            plain &= others == marks
            points += np.bitwise_count(marks)
            has = marks != 0
            place = np.where(has, 8 * n + first_byte(marks), place)
        rests.append(digits)
    zeros: Mask = np.ones(len(lengths), np.bool_)
    with_point = place < lengths
    if with_point.any():
        for n, digits in enumerate(rests):
            behind = ~kept(place + 1, n)
            zeros &= digits & behind == 0
    before = place - negative
    fraction = np.where(with_point, lengths - place - 1, 0)
    plain &= (points <= 1) & (before > 0) & (~with_point | (fraction > 0))
    plain &= (before == 1) | (first != ord("0"))
    return Numbers(plain, before, values.starts + place, fraction, zeros)


@dataclass
class Values:
    """One value of each line, by its place; `absent` where it has none."""

    lines: Lines
    starts: Places
    ends: Places
    absent: Mask

    @property
    def lengths(self) -> Places:
        """Bytes of each."""
        return self.ends - self.starts

    @cached_property
    def numbers(self) -> Numbers:
        """What they are as numbers with a decimal point."""
        return read_numbers(self, ord("."))

    @cached_property
    def with_exponent(self) -> Mask:
        """Which are such numbers with an exponent behind, of up to two digits; few are."""
        rest = ~self.absent & ~self.numbers.plain & (self.lengths <= MOST_BYTES)
        if not rest.any():
            return rest
        matches = pc.match_substring_regex(self.texts(rest), WITH_EXPONENT)
        mask: Mask = pc.fill_null(matches, False).to_numpy(zero_copy_only=False)
        return mask

    def without(self, nulls: Iterable[str]) -> Values:
        """The same, but for those that are words for 'no value'."""
        absent = self.absent.copy()
        for word in nulls:
            absent |= self.equal(word.encode()) if word else self.lengths == 0
        return self if (absent == self.absent).all() else replace(self, absent=absent)

    def or_else(self, other: Values) -> Values:
        """The same, and the other's where these are absent."""
        own = self.absent
        return Values(
            self.lines,
            np.where(own, other.starts, self.starts),
            np.where(own, other.ends, self.ends),
            own & other.absent,
        )

    def put(self, rows: Places, values: Values, wanted: Mask) -> None:
        """Take the wanted ones of other values for these rows."""
        self.starts[rows] = values.starts[wanted]
        self.ends[rows] = values.ends[wanted]
        self.absent[rows] = values.absent[wanted]

    def texts(self, wanted: Mask) -> pa.StringArray:
        """The wanted ones, null for the others."""
        return self.lines.texts(self.starts, self.ends, ~wanted)

    def words(self, count: int) -> list[Words]:
        """The first words of each, with zero bytes behind its end."""
        windows, lengths = self.lines.windows(self.starts, count), self.lengths
        return [windows[n] & kept(lengths, n) for n in range(count)]

    def equal(self, word: bytes) -> Mask:
        """Which are that word."""
        same: Mask = self.lengths == len(word)
        if same.any():
            same &= self.lines.stands(self.starts, word)
        return same
