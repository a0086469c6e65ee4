"""A column of texts as values: many at once by Arrow's casts, the others by the field's reader.

Arrow reads what is spelled plainly, by patterns of which it and the reader make the same; each
other text goes to the reader, once. So what a text means is said in one place (rivermark.model).
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.text_bytes import ByteSet, bytes_of, lengths_of
from rivermark.lake.arrow_types import arrow_type
from rivermark.model.field_readers import FALSE, TRUE, BooleanReader, TextReader
from rivermark.model.number_readers import DecimalReader, IntegerReader, NumberReader
from rivermark.model.reader import Reader, SqlReader, ValueReader
from rivermark.model.time_readers import (
    FEWEST_MILLIS,
    FIRST_MILLIS,
    LAST_MILLIS,
    InstantReader,
    MillisReader,
    WallReader,
)
from rivermark.model.zones import DAY, HOUR, SECOND, offset_of_hour, zone_of
from rivermark.quality.conditions import Conditions

INSTANT: Final = pa.timestamp("us", "UTC")
WALL: Final = pa.timestamp("us")
PLAIN: Final = ByteSet(b"0123456789.-")
MOST_BYTES: Final = 40
"""Bytes of a number that is cast without being looked at by itself."""
FEW: Final = 16
"""Texts that are read one by one: casts of a column take longer."""
DIGITS: Final = {16: 4, 32: 9, 64: 18}
"""Digits of which each number fits the bits of a whole one."""
NUMBER: Final = r"^-?[0-9]{1,20}(?:\.[0-9]{1,20})?(?:[eE][+-]?[0-9]{1,2})?$"
ISO: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
ZONE: Final = "(?:Z|[+-](?:0[0-9]|1[0-7]):[0-5][0-9])$"
NO_CHANGE: Final = (DAY, 24_836 * DAY)
"""Wall times of which the tables of all zones tell the same: from 1970-01-02 to 2037-12-31."""
TEXT: Final = "text"
MOST_KNOWN: Final = 4_096
"""Texts whose values by SQL are remembered, such as codes and names of payments."""


class ColumnValues:
    """Reads the texts of one field."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.type = arrow_type(reader.type)
        self._sql = _conditions(reader) if isinstance(reader, SqlReader) else None
        self._known = pa.array([], pa.string()), pa.array([], self.type)
        self._then = (
            ColumnValues(reader.then) if isinstance(reader, SqlReader) and reader.then else None
        )

    def read(self, texts: pa.Array) -> pa.Array:
        """The value of each text; null for none, and for one that cannot be read."""
        if isinstance(self.reader, TextReader):
            return texts
        if self._sql is not None:
            return self._by_sql(texts)
        if len(texts) - texts.null_count <= FEW:
            return self._one_by_one(texts)
        return self._cast(texts)

    def direct(self, kind: str) -> pa.DataType | None:
        """The type by which Arrow reads bare JSON values of a kind; None for those it cannot."""
        match self.reader:
            case (
                IntegerReader(decimal_comma=False)
                | DecimalReader(decimal_comma=False)
                | NumberReader(decimal_comma=False)
            ) if kind in ("number", "null"):
                return self.type
            case MillisReader() if kind in ("number", "null"):
                return pa.int64()
            case BooleanReader() if kind in ("bool", "null"):
                return self.type
            case _:
                return pa.string() if kind == "null" else None

    def converted(self, read: pa.Array) -> pa.Array:
        """The values of what was read by the type of `direct`; null for one that is none."""
        if read.type != self.type:
            return _moments(read)
        return _finite(read)

    def _by_sql(self, texts: pa.Array) -> pa.Array:
        """The values by SQL, of which those of some texts are remembered."""
        coded = texts.dictionary_encode()
        known, values = self._known
        places = pc.index_in(coded.dictionary, value_set=known)
        if places.null_count and self._sql is not None:
            new = coded.dictionary.filter(places.is_null())
            new_values = _whole(self._sql.values(pa.table({TEXT: new}))[TEXT])
            read = new_values if self._then is None else self._then.read(new_values)
            known, values = pa.concat_arrays([known, new]), pa.concat_arrays([values, read])
            places = pc.index_in(coded.dictionary, value_set=known)
            if len(known) <= MOST_KNOWN:
                self._known = known, values
        return values.take(places).take(coded.indices)

    def _one_by_one(self, texts: pa.Array) -> pa.Array:
        read = self.reader.value if isinstance(self.reader, ValueReader) else None
        values = [
            None if text is None or read is None else read(text) for text in texts.to_pylist()
        ]
        return pa.array(values, self.type)

    def _cast(self, texts: pa.Array) -> pa.Array:
        match self.reader:
            case (
                IntegerReader(decimal_comma=False)
                | DecimalReader(decimal_comma=False)
                | NumberReader(decimal_comma=False)
            ):
                return self._rest(texts, _numbers(texts, self.type))
            case BooleanReader():
                return self._words(texts)
            case InstantReader():
                return self._times(texts, None)
            case WallReader(formats=()):
                return self._times(texts, self.reader.zone)
            case MillisReader():
                return self._millis(texts)
            case _:
                return self._rest(texts, pa.nulls(len(texts), self.type))

    def _words(self, texts: pa.Array) -> pa.Array:
        known = pa.array([*TRUE, *FALSE])
        places = pc.index_in(texts, value_set=known)
        return self._rest(texts, pc.less(places, len(TRUE)))

    def _times(self, texts: pa.Array, zone: str | None) -> pa.Array:
        """Times with a zone, and those without one."""
        alike = _alike(texts)
        if alike is None:
            zoned = pc.match_substring_regex(texts, ISO + ZONE)
            bare = pc.match_substring_regex(texts, ISO + "$")
            known = _cast_or_none(pc.if_else(zoned, texts, None), INSTANT)
            walls = _cast_or_none(pc.if_else(bare, texts, None), WALL)
            return self._rest(texts, pc.coalesce(known, instants(walls, zone)))
        return self._rest(texts, alike if alike.type == INSTANT else instants(alike, zone))

    def _millis(self, texts: pa.Array) -> pa.Array:
        return self._rest(texts, _moments(_numbers(texts, pa.int64())))

    def _rest(self, texts: pa.Array, values: pa.Array) -> pa.Array:
        """The values, with those of the texts that have none yet."""
        if values.null_count == texts.null_count:
            return values
        rest = pc.and_(texts.is_valid(), values.is_null())
        coded = texts.filter(rest).dictionary_encode()
        read = self._one_by_one(coded.dictionary).take(coded.indices)
        if read.null_count == len(read):
            return values
        return pc.replace_with_mask(values, rest, read)


def _whole(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)


def _conditions(reader: SqlReader) -> Conditions:
    kind = pa.string() if reader.then else arrow_type(reader.type)
    return Conditions(
        {TEXT: reader.expression}, pa.schema({TEXT: pa.string()}), {TEXT: kind}, "its SQL over"
    )


def _moments(millis: pa.Array) -> pa.Array:
    """The instants of milliseconds; null for those that are none."""
    is_moment = pc.and_(
        pc.and_(pc.greater_equal(millis, FIRST_MILLIS), pc.less_equal(millis, LAST_MILLIS)),
        pc.or_(pc.greater_equal(millis, FEWEST_MILLIS), pc.less_equal(millis, -FEWEST_MILLIS)),
    )
    return pc.multiply(pc.if_else(is_moment, millis, None), 1000).cast(INSTANT)


def _cast_or_none(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), kind)
    try:
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:
        # One is no date, such as of a 30th of February.
        return pa.nulls(len(texts), kind)


def _alike(texts: pa.Array) -> pa.Array | None:
    """Times of texts that are all written in the same places; None of others."""
    size = len(texts[0].as_py() or "") if texts.null_count == 0 else 0
    if size < 19 or not (lengths_of(texts) == size).all():
        return None
    data = bytes_of(texts).reshape(len(texts), size)
    places = {13: ":", 16: ":"} | ({19: "."} if size > 20 else {})
    if not all((data[:, place] == ord(mark)).all() for place, mark in places.items()):
        return None
    has_zone = bool((data[:, -1] == ord("Z")).all())
    try:
        return pc.cast(texts, INSTANT if has_zone else WALL)
    except pa.ArrowInvalid:
        return None


def instants(walls: pa.Array, name: str | None) -> pa.Array:
    """The instants of wall-clock times; null beside the hours in which the clock changes."""
    if name is None:
        return walls.cast(INSTANT)
    zone = zone_of(name)
    micros = walls.cast(pa.int64())
    known = pc.and_(pc.greater_equal(micros, NO_CHANGE[0]), pc.less(micros, NO_CHANGE[1]))
    if zone is None or not pc.any(known).as_py():
        return pa.nulls(len(walls), INSTANT)
    some = pc.if_else(known, micros, None)
    hours = pc.divide(some, HOUR).dictionary_encode()
    offsets = pa.array([offset_of_hour(h, zone) for h in hours.dictionary.to_pylist()], pa.int64())
    east = pc.multiply(offsets, SECOND).take(hours.indices)
    return pc.subtract(some, east).cast(INSTANT)


def _numbers(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """The plain numbers among texts, which no cast refuses."""
    if PLAIN.has_all(bytes_of(texts)) and lengths_of(texts).max(initial=0) <= MOST_BYTES:
        try:
            return _finite(pc.cast(texts, kind))
        except pa.ArrowInvalid:
            pass  # One has more digits than the type, or some that are rounded.
    plain = pc.match_substring_regex(texts, _pattern(kind))
    return _finite(pc.cast(pc.if_else(plain, texts, None), kind))


def _finite(values: pa.Array) -> pa.Array:
    """Numbers, but for those beyond the largest of their type."""
    if not pa.types.is_floating(values.type) or pc.all(finite := pc.is_finite(values)).as_py():
        return values
    return pc.if_else(finite, values, None)


def _pattern(kind: pa.DataType) -> str:
    if pa.types.is_floating(kind):
        return NUMBER
    if not pa.types.is_decimal(kind):
        return f"^-?[0-9]{{1,{DIGITS[kind.bit_width]}}}$"
    fraction = rf"(?:\.[0-9]{{1,{kind.scale}}})?" if kind.scale else ""
    return f"^-?[0-9]{{1,{max(kind.precision - kind.scale, 1)}}}{fraction}$"
