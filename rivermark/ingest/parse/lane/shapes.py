"""Where the values of a line stand, proved byte for byte.

A JSON line is looked at through a shape: the text before, between and behind its values, spaces
included, taken from a line of the batch. Where all pieces of the shape stand in a line one behind
the other, with nothing but a value between two of them, the line is that object and no other: each
key stands in it once, and nothing stands behind it. No parser is asked, so none can be lenient.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from rivermark.ingest.parse.lane.lines import (
    WINDOW,
    Lines,
    Mask,
    Places,
    Words,
    equal_bytes,
    first_byte,
)
from rivermark.ingest.parse.lane.values import Values

MOST_PIECE: Final = 256
"""Bytes of a piece; a key is not longer."""
MOST_VALUES: Final = 1_000
"""Values of a line. Each is looked at for thousands of rows together: one line of 50,000 keys would
take gigabytes and ten seconds."""
QUOTE: Final = ord('"')
FIRST: Final = np.uint64(0xFF)
HALF: Final = np.uint64(0xFFFFFFFF)
NULL: Final = np.uint64(int.from_bytes(b"null", "little"))
_VALUE: Final = re.compile(rb'[ \t]*"([^"\\]*)"[ \t]*:[ \t]*("[^"\\]*"|[^",{}\[\] \t]+)')


@dataclass(frozen=True)
class Slot:
    """A value of a shape: the piece before it, its key, and whether it is a text in quotes.

    None where that is not known, of a line that has null there.
    """

    piece: bytes
    key: str
    quoted: bool | None


@dataclass(frozen=True)
class Shape:
    """A JSON object without its values; `tail` closes it."""

    slots: tuple[Slot, ...]
    tail: bytes

    @property
    def keys(self) -> tuple[str, ...]:
        """Its keys, in order."""
        return tuple(slot.key for slot in self.slots)


def shape_of(line: bytes) -> Shape | None:
    """The shape of a line; None where it is no plain object of texts, numbers and words."""
    opening = re.match(rb"[ \t]*\{", line)
    if opening is None:
        return None
    slots: list[Slot] = []
    before, at = 0, opening.end()
    while True:
        value = _VALUE.match(line, at)
        if value is None:
            return None
        quoted = value[2].startswith(b'"') if value[2] != b"null" else None
        slots.append(Slot(line[before : value.start(2)], value[1].decode(errors="replace"), quoted))
        before = value.end(2)
        comma = re.compile(rb"[ \t]*,").match(line, before)
        if comma is None:
            break
        if len(slots) == MOST_VALUES:
            return None
        at = comma.end()
    tail = line[before:]
    keys = [slot.key for slot in slots]
    if len(set(keys)) < len(keys) or not re.fullmatch(rb"[ \t]*\}[ \t]*", tail):
        return None
    if any(len(slot.piece) > MOST_PIECE or "\ufffd" in slot.key for slot in slots):
        return None
    return Shape(tuple(slots), tail)


@dataclass
class Cut:
    """The values of lines in the order of a shape, and which lines have it."""

    values: Sequence[Values]
    good: Mask


def cut_json(lines: Lines, shape: Shape) -> Cut:
    """Look at lines through a shape. A value that is not in quotes may be anything yet."""
    good: Mask = np.ones(len(lines), np.bool_)
    at = lines.starts
    values: list[Values] = []
    ends = [slot.piece[0] for slot in shape.slots[1:]] + [shape.tail[0]]
    for slot, end_byte in zip(shape.slots, ends, strict=True):
        good &= lines.stands(at, slot.piece)
        if not good.any():
            break
        at = np.where(good, at + len(slot.piece), lines.starts)
        word = lines.windows(at, 1)[0]
        absent = word & HALF == NULL
        quoted = slot.quoted
        if quoted is None:
            quoted = bool((good & (word & FIRST == QUOTE)).any())
        if quoted:
            good &= absent | (word & FIRST == QUOTE)
            start = at + 1
            end = _next(lines, start, QUOTE)
            # A null is behind its quote that is not there: nothing of it is looked at.
            after = np.where(absent, at + 4, end + 1)
        else:
            start = at
            after = end = _next(lines, start, end_byte, word)
            good &= ~absent | (end == start + 4)
        inside = after <= lines.ends
        good &= inside
        at = np.where(good, after, lines.starts)
        has = good & ~absent
        value = Values(lines, np.where(has, start, at), np.where(has, end, at), absent)
        if not quoted:
            known = absent | value.numbers.plain | value.equal(b"true") | value.equal(b"false")
            good &= known if known[good].all() else known | value.with_exponent
        values.append(value)
    else:
        good &= lines.stands(at, shape.tail) & (at + len(shape.tail) == lines.ends)
    return Cut(values, good)


def _next(lines: Lines, places: Places, byte: int, word: Words | None = None) -> Places:
    """The first place from each on where a byte stands; that of the padding for none."""
    at = np.full(len(places), -1, np.int64)
    for n in range(WINDOW // 8):
        # Word by word: most values end in the first or the second.
        if n or word is None:
            word = lines.windows(places + 8 * n, 1)[0]
        marks = equal_bytes(word, byte)
        hit = (marks != 0) & (at < 0) if n else marks != 0
        place = places + 8 * n + first_byte(marks)
        at = place if n == 0 and hit.all() else np.where(hit, place, at)
        if (at >= 0).all():
            return at
    far = at < 0
    if byte == QUOTE:
        stands = np.append(lines.quotes, len(lines.bytes) - 1)
        at[far] = stands[np.searchsorted(stands, places[far])]
    else:
        at[far] = len(lines.bytes) - 1
    return at


def cut_csv(lines: Lines, columns: int, delimiter: bytes) -> tuple[list[Values], Mask]:
    """Split lines at their delimiters; those with another number of values are not good.

    Nor are lines with quotes elsewhere than around whole values. Some empty values behind the last
    column are no data, as the cutter has it.
    """
    places = lines.places_of(delimiter[0])
    first = np.searchsorted(places, lines.starts)
    more = np.searchsorted(places, lines.ends) - first - (columns - 1)
    good: Mask = (more >= 0) & (more <= columns)
    # One more, for lines with too few of them.
    places = np.append(places, len(lines.bytes) - 1)
    last = len(places) - 1
    tail = good & (more > 0)
    if tail.any():
        behind = places[np.minimum(first + columns - 1, last)]
        good &= ~tail | (lines.ends - behind == more)
    values = []
    start = lines.starts
    for n in range(columns):
        end = lines.ends
        if n < columns - 1 or tail.any():
            end = np.where(good, places[np.minimum(first + n, last)], start)
        if n == columns - 1 and tail.any():
            end = np.where(good & ~tail, lines.ends, end)
        values.append(Values(lines, start, end, start == end))
        start = np.where(good, end + 1, start)
    quoted = lines.holds(b'"')
    return (values, good) if quoted is None else _unquoted(lines, values, good, quoted)


def _unquoted(
    lines: Lines, values: Sequence[Values], good: Mask, quoted: Mask
) -> tuple[list[Values], Mask]:
    """The values without the quotes around them, where a line has no others."""
    rest = np.searchsorted(lines.quotes, lines.ends) - np.searchsorted(lines.quotes, lines.starts)
    inner = []
    for value in values:
        both = quoted & good & (value.lengths >= 2)
        both &= lines.bytes[value.starts] == QUOTE
        both &= lines.bytes[np.maximum(value.ends - 1, 0)] == QUOTE
        rest -= 2 * both
        # An empty value in quotes is a text, where the field has no such word for 'no value'.
        inner.append(Values(lines, value.starts + both, value.ends - both, value.absent))
    return inner, good & (rest == 0)
