"""Times as ISO-8601 writes them: 2026-03-01T12:00:00, with up to six digits behind the second."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa

from rivermark.ingest.parse.lane.lines import (
    HIGH,
    LOW,
    WINDOW,
    Mask,
    Places,
    Words,
    each_byte,
    kept,
)
from rivermark.ingest.parse.lane.values import NO_DIGIT, ZEROS, Values

FIRST_YEAR: Final = 1583
"""The first year that every calendar counts alike."""
LAST_YEAR: Final = 9999
SECOND: Final = 1_000_000
TO_SECOND: Final = 19
"""Bytes of a time without fraction and zone."""

_DASHES: Final = np.uint64(int.from_bytes(b"\0\0\0\0-\0\0-", "little"))
_COLON: Final = np.uint64(int.from_bytes(b"\0\0\0\0\0:\0\0", "little"))
_COLONS: Final = np.uint64(int.from_bytes(b"\0\0:\0\0:\0\0", "little"))


_DATE: Final = np.uint64(0xFF0000FF00000000)
_DATE_DIGITS: Final = np.uint64(0x0080800080808080)
_HOUR: Final = np.uint64(0x0000FF0000000000)
_HOUR_DIGITS: Final = np.uint64(0x8080008080008080 & ~0x800000)
_CLOCK: Final = np.uint64(0x0000FF0000FF0000)
_CLOCK_DIGITS: Final = np.uint64(0x8080008080008080)


def _months() -> tuple[Places, Places]:
    """By (year - FIRST_YEAR) * 16 + month: days since 1970 of its first, and days in it."""
    count = (LAST_YEAR - FIRST_YEAR + 1) * 16
    firsts, lengths = np.zeros(count, np.int64), np.zeros(count, np.int64)
    epoch = date(1970, 1, 1).toordinal()
    first = date(FIRST_YEAR, 1, 1).toordinal() - epoch
    for year in range(FIRST_YEAR, LAST_YEAR + 1):
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        for month in range(1, 13):
            days = (31, 28 + leap, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]
            place = (year - FIRST_YEAR) * 16 + month
            firsts[place], lengths[place] = first, days
            first += days
    return firsts, lengths


FIRSTS, DAYS = _months()


@dataclass
class Times:
    """What the texts are as times: which are plain ones, and microseconds since 1970.

    Where a text names a zone, `zoned`, those are of the instant; elsewhere of the wall clock, as if
    it were in UTC.
    """

    plain: Mask
    zoned: Mask
    micros: Places


def times(values: Values) -> Times:
    """Read the texts as times."""
    lengths = values.lengths
    plain: Mask = ~values.absent & (lengths >= TO_SECOND) & (lengths <= WINDOW)
    # Three words from the beginning: the date, from the day on, and from the hour on.
    head = values.lines.windows(values.starts, 3)
    dated, houred = head[0], head[1]
    clock = (head[1] >> np.uint64(24)) | (head[2] << np.uint64(40))
    plain &= (dated & _DATE) == _DASHES
    plain &= (houred & _HOUR) == _COLON
    plain &= (clock & _CLOCK) == _COLONS
    between = (houred >> np.uint64(16)) & np.uint64(0xFF)
    plain &= (between == ord("T")) | (between == ord(" "))
    plain &= (_no_digits(dated) & _DATE_DIGITS) == 0
    plain &= (_no_digits(houred) & _HOUR_DIGITS) == 0
    plain &= (_no_digits(clock) & _CLOCK_DIGITS) == 0
    date_pairs, hour_pairs, clock_pairs = _pairs(dated), _pairs(houred), _pairs(clock)
    year = _pair(date_pairs, 0) * 100 + _pair(date_pairs, 2)
    month, day = _pair(date_pairs, 5), _pair(hour_pairs, 0)
    hour, minute, second = _pair(clock_pairs, 0), _pair(clock_pairs, 3), _pair(clock_pairs, 6)
    plain &= (year >= FIRST_YEAR) & (year <= LAST_YEAR) & (month <= 12)
    plain &= (hour < 24) & (minute < 60) & (second < 60)
    place = np.where(plain, (year - FIRST_YEAR) * 16 + month, 0)
    plain &= (day > 0) & (day <= DAYS[place])
    micros = (((FIRSTS[place] + day - 1) * 24 + hour) * 60 + minute) * 60 + second
    zone, zone_bytes, zone_good = _zone(values, plain)
    fraction, fraction_good = _fraction(values, lengths - TO_SECOND - zone_bytes)
    plain &= zone_good & fraction_good
    return Times(plain, zone_bytes > 0, (micros - zone) * SECOND + fraction)


def _no_digits(word: Words) -> Words:
    digits = word ^ ZEROS
    return ((digits & LOW) + NO_DIGIT) | digits


def _pairs(word: Words) -> Words:
    """At each byte the number that it and the next one write, where both are digits."""
    digits = word & each_byte(0x0F)
    return digits * np.uint64(10) + (digits >> np.uint64(8))


def _pair(pairs: Words, byte: int) -> Places:
    return ((pairs >> np.uint64(8 * byte)) & np.uint64(0xFF)).astype(np.int64)


def _zone(values: Values, plain: Mask) -> tuple[Places, Places, Mask]:
    """The seconds east of UTC, the bytes that say so, and whether they are plain."""
    lines, ends, count = values.lines, values.ends, len(values.lines)
    good: Mask = np.ones(count, np.bool_)
    seconds = np.zeros(count, np.int64)
    size = (lines.bytes[np.maximum(ends - 1, 0)] == ord("Z")).astype(np.int64)
    rest = plain & (size == 0) & (values.lengths > TO_SECOND)
    if rest.any():
        # Such as +01:00; what else may stand there is no plain fraction, and asked for that.
        word = lines.windows(np.maximum(ends - 6, 0), 1)[0]
        sign = word & np.uint64(0xFF)
        offset = rest & ((sign == ord("+")) | (sign == ord("-")))
        offset &= ((word >> np.uint64(24)) & np.uint64(0xFF)) == ord(":")
        offset &= values.lengths >= TO_SECOND + 6
        pairs = _pairs(word)
        hours, minutes = _pair(pairs, 1), _pair(pairs, 4)
        digits = (_no_digits(word) & np.uint64(0x0000808000808000)) == 0
        size = np.where(offset, 6, size)
        good &= ~offset | (digits & (hours < 18) & (minutes < 60))
        east = (hours * 60 + minutes) * 60
        seconds = np.where(offset, np.where(sign == ord("-"), -east, east), 0)
    return seconds, size, good


def _fraction(values: Values, size: Places) -> tuple[Places, Mask]:
    """The microseconds behind the second, and whether what stands there is plain."""
    if not size.any():
        return np.zeros(len(size), np.int64), np.ones(len(size), np.bool_)
    word = values.lines.windows(values.starts + TO_SECOND, 1)[0]
    good: Mask = (size == 0) | ((size >= 2) & (size <= 7) & (word & np.uint64(0xFF) == ord(".")))
    keep = kept(np.minimum(size - 1, 6), 0)
    word = ((word >> np.uint64(8)) & keep) | (ZEROS & ~keep)
    good &= (_no_digits(word) & HIGH) == 0
    pairs = _pairs(word)
    micros = _pair(pairs, 0) * 10_000 + _pair(pairs, 2) * 100 + _pair(pairs, 4)
    return np.where(size > 0, micros, 0), good


def instants(micros: Places, good: Mask) -> pa.Array:
    """Times of microseconds since 1970, null where they are not good."""
    return pa.array(micros, pa.int64(), mask=~good).cast(pa.timestamp("us", "UTC"))
