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
WORDS: Final = b"tf"
"""How `true` and `false` begin."""
NULL: Final = np.uint64(int.from_bytes(b"null", "little"))
MOST_LEVELS: Final = 8
"""How deep objects within a line are nested at most."""
_OPEN: Final = re.compile(rb"[ \t]*\{")
_KEY: Final = re.compile(rb'[ \t]*"([^"\\]*)"[ \t]*:[ \t]*')
_VALUE: Final = re.compile(rb'"[^"\\]*"|[^",{}\[\] \t]+')
_COMMA: Final = re.compile(rb"[ \t]*,")
_CLOSE: Final = re.compile(rb"[ \t]*\}")
_SPACES: Final = re.compile(rb"[ \t]*")


@dataclass(frozen=True)
class Slot:
    """A value of a shape: the piece before it, its key, and whether it is a text in quotes.

    That is None where it is not known, of a line that has null there. The key is None of a value
    within an object that is a value itself.
    """

    piece: bytes
    key: str | None
    quoted: bool | None


@dataclass(frozen=True)
class Inner:
    """An object that is a value: its key, and where it begins and ends.

    Both are the number of a piece, that of the tail behind the others, and the bytes before it
    within that piece.
    """

    key: str
    begin: tuple[int, int]
    end: tuple[int, int]


@dataclass(frozen=True)
class Shape:
    """A JSON object without its values; `tail` closes it."""

    slots: tuple[Slot, ...]
    tail: bytes
    inner: tuple[Inner, ...] = ()

    @property
    def keys(self) -> tuple[str | None, ...]:
        """The keys of its slots, and then those of the objects within it."""
        return (*(slot.key for slot in self.slots), *(each.key for each in self.inner))


def shape_of(line: bytes) -> Shape | None:
    """The shape of a line; None where it is no plain object of plain values and such objects."""
    opening = _OPEN.match(line)
    if opening is None:
        return None
    slots: list[Slot] = []
    inner: list[Inner] = []
    opened: list[tuple[str, tuple[int, int]]] = []
    before, at = 0, opening.end()
    while len(slots) < MOST_VALUES:
        key = _KEY.match(line, at)
        if key is None:
            return None
        name, at = key[1].decode(errors="replace"), key.end()
        if line[at : at + 1] == b"{" and len(opened) < MOST_LEVELS:
            opened.append((name, (len(slots), at - before)))
            at += 1
            if _CLOSE.match(line, at) is None:
                continue
        else:
            value = _VALUE.match(line, at)
            if value is None:
                return None
            quoted = value[0].startswith(b'"') if value[0] != b"null" else None
            slots.append(Slot(line[before:at], None if opened else name, quoted))
            before = at = value.end()
        while opened and (close := _CLOSE.match(line, at)):
            at = close.end()
            name, begin = opened.pop()
            if not opened:
                inner.append(Inner(name, begin, (len(slots), at - before)))
        comma = _COMMA.match(line, at)
        if at - before > MOST_PIECE:
            return None
        if comma is None:
            return _checked(Shape(tuple(slots), line[before:], tuple(inner)), line[at:], opened)
        at = comma.end()
    return None


def _checked(shape: Shape, rest: bytes, opened: Sequence[object]) -> Shape | None:
    """The shape, where the rest of its line closes it and nothing else is doubtful."""
    close = _CLOSE.match(rest)
    if opened or close is None or not _SPACES.fullmatch(rest, close.end()):
        return None
    keys = [key for key in shape.keys if key is not None]
    pieces = [*(slot.piece for slot in shape.slots), shape.tail]
    if shape.inner and len({key.lower() for key in keys}) < len(keys):
        return None  # Which of them is the last one no longer shows in their order.
    if not shape.slots or len(set(keys)) < len(keys) or any("\ufffd" in key for key in keys):
        return None
    return shape if all(len(piece) <= MOST_PIECE for piece in pieces) else None


@dataclass
class Cut:
    """The values of lines in the order of a shape's keys, and which lines have it."""

    values: Sequence[Values]
    good: Mask


def cut_json(lines: Lines, shape: Shape) -> Cut:
    """Look at lines through a shape. A value that is not in quotes may be anything yet."""
    good: Mask = np.ones(len(lines), np.bool_)
    at = lines.starts
    values: list[Values] = []
    begins: list[Places] = []
    ends = [slot.piece[0] for slot in shape.slots[1:]] + [shape.tail[0]]
    for slot, end_byte in zip(shape.slots, ends, strict=True):
        begins.append(at)
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
            good &= _known(value, good, begins_word=int(word[good.argmax()] & FIRST) in WORDS)
        values.append(value)
    else:
        begins.append(at)
        good &= lines.stands(at, shape.tail) & (at + len(shape.tail) == lines.ends)
        for each in shape.inner:
            start, end = (
                np.where(good, begins[piece] + more, lines.starts)
                for piece, more in (each.begin, each.end)
            )
            values.append(Values(lines, start, end, np.zeros(len(lines), np.bool_)))
    return Cut(values, good)


def _known(value: Values, good: Mask, *, begins_word: bool) -> Mask:
    """Which of the good values are null, plain numbers, `true` or `false`; asked in turn.

    `begins_word` tells what to ask first: most columns hold one or the other.
    """

    def numbers() -> Mask:
        return value.numbers.plain

    def words() -> Mask:
        return value.equal(b"true") | value.equal(b"false")

    def with_exponent() -> Mask:
        return value.with_exponent

    known = value.absent
    first, second = (words, numbers) if begins_word else (numbers, words)
    for ask in (first, second, with_exponent):
        if known[good].all():
            break
        known = known | ask()
    return known


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
