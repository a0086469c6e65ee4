"""Columns that were typed before, cast to the fields of a contract.

What a value becomes is what its text in the payload would: the cast says of a row that all its
values are cast, or that the parser has to be asked, which reads the payload; never that it is bad.
A value that would be rounded, is out of bounds or of another kind is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from rivermark.ingest.parse.cutter import Spelled
from rivermark.lake.json_columns import plain_texts
from rivermark.model.reader import NamedReader
from rivermark.model.source import Columns
from rivermark.model.time_readers import FEWEST_MILLIS, FIRST_MILLIS, LAST_MILLIS

REPLACED: Final = "\ufffd"
DIGITS: Final = 10**15
"""A decimal of fewer digits is the only such one that its double stands for."""
UTC: Final = pa.timestamp("us", "UTC")
FIRST_MICROS, LAST_MICROS = FIRST_MILLIS * 1_000, LAST_MILLIS * 1_000 + 999
UNITS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}

Instants = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""The microseconds since 1970 of wall-clock times, and which of them are such beyond doubt."""
Texts = Callable[[pa.StringArray], tuple[pa.Array, np.ndarray]]
"""The values of texts, and which are plainly such; null is one."""


@dataclass(frozen=True)
class Target:
    """A field to which columns are cast: how it is spelled and read.

    `kind` is its Arrow type, `reader` what reads a text of it (None: its own, and texts are left
    to it), `texts` the reader of plain texts, `wall` that of wall-clock times of its zone.
    """

    spelled: Spelled
    required: bool
    kind: pa.DataType
    reader: NamedReader | None
    texts: Texts
    wall: Instants | None = None


def cast_rows(
    targets: Sequence[Target], payloads: pa.StringArray, columns: Columns, most: int
) -> tuple[dict[str, pa.Array], np.ndarray]:
    """The values of rows whose payloads have up to `most` bytes, and which rows are cast."""
    good = pc.and_not(
        pc.less_equal(pc.binary_length(payloads), most), pc.match_substring(payloads, REPLACED)
    ).to_numpy(zero_copy_only=False)
    rows = columns.rows
    exact = dict(zip(rows.schema.names, rows.columns, strict=True))
    named = {name.lower(): column for name, column in exact.items()} | exact
    values = {}
    for target in targets:
        own = {id(named[key]): named[key] for key in target.spelled.keys if key in named}
        values[target.spelled.name], read = _first(target, [*own.values()], len(payloads))
        good = good & read
    return values, good


def _first(target: Target, columns: Sequence[pa.Array], count: int) -> tuple[pa.Array, np.ndarray]:
    """The values of the first of some columns that each row has one in."""
    kind = pa.string() if target.reader is None else target.kind
    values, read, missing = (
        pa.nulls(count, kind),
        np.ones(count, np.bool_),
        np.ones(count, np.bool_),
    )
    for column in columns:
        if not missing.any():
            break
        more, more_read, valid = _cast(target, column)
        values = more if missing.all() else pc.if_else(pa.array(missing), more, values)
        read = np.where(missing, more_read, read)
        missing = missing & ~valid
    return values, read & ~missing if target.required else read


def _cast(target: Target, column: pa.Array) -> tuple[pa.Array, np.ndarray, np.ndarray]:
    """The values of a column, which of them are cast, and which there are."""
    nulls = target.spelled.nulls
    if t.is_string(column.type) or any(nulls):
        texts = target.spelled.without_nulls(plain_texts(column))
        if texts.null_count > column.null_count:
            column = pc.if_else(texts.is_valid(), column, None)
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    values = (
        plain_texts(column) if target.reader is None else _values(target, target.reader, column)
    )
    if values is not None:
        return values, np.ones(len(column), np.bool_), valid
    values, read = target.texts(plain_texts(column))
    return values, read | ~valid, valid


def _values(target: Target, reader: NamedReader, column: pa.Array) -> pa.Array | None:
    """The column as the field's type; None where a value has to be read as the text that it is."""
    kind = column.type
    try:
        match reader.kind:
            case "text":
                return plain_texts(column)
            case _ if reader.decimal_comma:
                return None
            case "integer" if t.is_integer(kind):
                return column.cast(target.kind)
            case "integer" if t.is_floating(kind):
                # A fraction raises, and so do whole numbers that a double has no digits for.
                return column.cast(pa.int64()).cast(target.kind)
            case "decimal" if t.is_integer(kind):
                return column.cast(pa.decimal128(20, 0)).cast(target.kind)
            case "decimal" if t.is_float64(kind):
                return _decimals(column, target.kind)
            case "decimal" if t.is_decimal(kind):
                rounded = pc.round(column, target.kind.scale, round_mode="half_towards_infinity")
                return rounded.cast(target.kind)
            case "number" if t.is_integer(kind) and t.is_float64(target.kind):
                return column.cast(pa.float64(), safe=False)
            case "number" if kind == target.kind:
                return column if pc.all(pc.is_finite(column), min_count=0).as_py() else None
            case "boolean" if t.is_boolean(kind):
                return column
            case "instant" | "wall" if t.is_timestamp(kind):
                return _instants(column, target.wall if reader.kind == "wall" else None)
            case "millis" if t.is_integer(kind):
                return _millis(column)
    except pa.ArrowInvalid:
        pass
    return None


def _decimals(column: pa.Array, kind: pa.DataType) -> pa.Array | None:
    """Doubles that have no digits beyond the scale, as decimals."""
    doubles = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    power = 10.0**kind.scale
    with np.errstate(over="ignore", invalid="ignore"):
        units = np.rint(doubles * power)
        few = np.abs(units) < min(DIGITS, 10**kind.precision)
        if not (few & (units / power == doubles)).all():
            return None
    words = np.empty((len(column), 2), np.int64)
    words[:, 0] = units
    words[:, 1] = words[:, 0] >> 63
    valid = None if not column.null_count else column.is_valid().buffers()[1]
    return pa.Array.from_buffers(kind, len(column), [valid, pa.py_buffer(words)])


def _instants(column: pa.Array, wall: Instants | None) -> pa.Array | None:
    """Times in microseconds, floored; of a wall clock where they have no zone and it is given."""
    ticks = pc.fill_null(column.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    unit = column.type.unit
    if unit == "ns":
        ticks, unit = np.floor_divide(ticks, 1_000), "us"
    most = LAST_MICROS // UNITS[unit]
    if ((ticks < FIRST_MICROS // UNITS[unit]) | (ticks > most)).any():
        return None
    micros = ticks * UNITS[unit]
    if wall is not None and column.type.tz is None:
        micros, clear = wall(micros)
        if not (clear | column.is_null().to_numpy(zero_copy_only=False)).all():
            return None
    return _times(micros, column)


def _millis(column: pa.Array) -> pa.Array | None:
    numbers = column.cast(pa.int64())
    millis = pc.fill_null(numbers, FIRST_MILLIS).to_numpy(zero_copy_only=False)
    known = (np.abs(millis) >= FEWEST_MILLIS) & (millis >= FIRST_MILLIS) & (millis <= LAST_MILLIS)
    return _times(millis * 1_000, column) if known.all() else None


def _times(micros: np.ndarray, column: pa.Array) -> pa.Array:
    none = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    return pa.array(micros, pa.int64(), mask=none).cast(UTC)
