"""Columns that were typed before, cast to the fields of a contract.

What a value becomes is what its text in the payload would: the cast says of a row that all its
values are cast, or that the parser has to be asked, which reads the payload; never that it is bad.
A value that would be rounded, is out of bounds or of another kind is asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from rivermark.ingest.parse.column_values import INSTANT, WALL, ColumnValues, instants
from rivermark.ingest.parse.field_column import FieldColumn
from rivermark.ingest.parse.text_bytes import REPLACED, lengths_of, with_text
from rivermark.ingest.parse.typed_read import Typed, TypedRead
from rivermark.lake.json_columns import plain_texts
from rivermark.model.field_readers import BooleanReader, TextReader
from rivermark.model.number_readers import DecimalReader, IntegerReader, NumberReader
from rivermark.model.source import Columns
from rivermark.model.time_readers import (
    FIRST_MILLIS,
    LAST_MILLIS,
    InstantReader,
    MillisReader,
    WallReader,
)

DIGITS: Final = 10**15
"""A decimal of fewer digits is the only such one that its double stands for."""
FIRST_MICROS, LAST_MICROS = FIRST_MILLIS * 1_000, LAST_MILLIS * 1_000 + 999
UNITS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


def read_known(
    read: TypedRead,
    payloads: pa.StringArray,
    formats: pa.Array,
    names: pa.Array,
    known: Sequence[Columns],
) -> Typed:
    """Type payloads by the formats and columns of their files, and cast the columns that some were.

    Those come in the order of the payloads.
    """
    parts, at = [], 0
    for each in [*known, None]:
        end = each.first if each else len(payloads)
        if at < end:
            own = (column.slice(at, end - at) for column in (payloads, formats, names))
            parts.append(read.read(*own))
        if each:
            own_payloads = payloads.slice(each.first, each.rows.num_rows)
            parts.append(cast_rows(read.fields, own_payloads, each, read.max_bytes))
            at = each.first + each.rows.num_rows
    return Typed(
        {f.name: pa.concat_arrays([part.columns[f.name] for part in parts]) for f in read.fields},
        np.concatenate([part.good for part in parts]),
    )


def cast_rows(
    fields: Sequence[FieldColumn], payloads: pa.StringArray, columns: Columns, most: int
) -> Typed:
    """The values of rows whose payloads have up to `most` bytes, and which rows are cast."""
    good = pa.array(lengths_of(payloads) <= most)
    if (replaced := with_text(payloads, REPLACED)) is not None:
        good = pc.and_not(good, replaced)
    rows = columns.rows
    exact = dict(zip(rows.schema.names, rows.columns, strict=True))
    named = {name.lower(): column for name, column in exact.items()} | exact
    values = {}
    for field in fields:
        own = {id(named[key]): named[key] for key in field.spelled.keys if key in named}
        values[field.name], fine = _first(field, [*own.values()], len(payloads))
        if fine is not None:
            good = pc.and_(good, fine)
    if good.false_count:
        values = {name: column.filter(good) for name, column in values.items()}
    return Typed(values, good.to_numpy(zero_copy_only=False))


def _first(
    field: FieldColumn, columns: Sequence[pa.Array], count: int
) -> tuple[pa.Array, pa.Array | None]:
    """The values of the first of some columns that each row has one in, and which are cast.

    None where all are.
    """
    if not columns:
        none = pa.repeat(False, count) if field.required else None
        return pa.nulls(count, field.values.type), none
    values, fine, own = _cast(field, columns[0])
    for column in columns[1:]:
        if not own.null_count:
            break
        valid = own.is_valid()
        more, more_fine, other = _cast(field, column)
        values = pc.if_else(valid, values, more)
        if fine is not None or more_fine is not None:
            fine = pc.if_else(valid, _or_true(fine), _or_true(more_fine))
        # What a row has by now, whichever column it came from.
        own = pc.if_else(pc.or_(valid, other.is_valid()), True, pa.scalar(None, pa.bool_()))
    if field.required and own.null_count:
        fine = own.is_valid() if fine is None else pc.and_(fine, own.is_valid())
    return values, fine


def _or_true(fine: pa.Array | None) -> Any:
    return True if fine is None else fine


def _cast(field: FieldColumn, column: pa.Array) -> tuple[pa.Array, pa.Array | None, pa.Array]:
    """The values of a column, which are cast (None: all), and the column without `nulls`."""
    if t.is_string(column.type) or len(field.spelled.nulls) > 1:
        texts = field.spelled.without_nulls(plain_texts(column))
        if texts.null_count > column.null_count:
            column = pc.if_else(texts.is_valid(), column, None)
    values = _values(field.values, column)
    if values is None:
        values = field.values.read(plain_texts(column))
    if values.null_count == column.null_count:
        return values, None, column
    return values, pc.or_(values.is_valid(), column.is_null()), column


def _values(values: ColumnValues, column: pa.Array) -> pa.Array | None:
    """The column as the field's type; None where a value has to be read as the text that it is."""
    kind, target = column.type, values.type
    try:
        match values.reader:
            case TextReader():
                return plain_texts(column)
            case IntegerReader(decimal_comma=False) if t.is_integer(kind):
                return column.cast(target)
            case IntegerReader(decimal_comma=False) if t.is_floating(kind):
                # A fraction raises, and so do whole numbers that a double has no digits for.
                return column.cast(pa.int64()).cast(target)
            case DecimalReader(decimal_comma=False) if t.is_integer(kind):
                return column.cast(pa.decimal128(20, 0)).cast(target)
            case DecimalReader(decimal_comma=False) if t.is_float64(kind):
                return _decimals(column, target)
            case DecimalReader(decimal_comma=False) if t.is_decimal(kind):
                rounded = pc.round(column, target.scale, round_mode="half_towards_infinity")
                return rounded.cast(target)
            case NumberReader(decimal_comma=False) if t.is_integer(kind) and t.is_float64(target):
                return column.cast(pa.float64(), safe=False)
            case NumberReader(decimal_comma=False) if kind == target:
                return column if pc.all(pc.is_finite(column), min_count=0).as_py() else None
            case BooleanReader() if t.is_boolean(kind):
                return column
            case InstantReader() if t.is_timestamp(kind):
                return _times(column, None)
            case WallReader() if t.is_timestamp(kind) and not values.reader.formats:
                return _times(column, values.reader.zone)
            case MillisReader() if t.is_integer(kind):
                return _whole(values.converted(column.cast(pa.int64())), column)
    except pa.ArrowInvalid:
        pass
    return None


def _whole(values: pa.Array, column: pa.Array) -> pa.Array | None:
    """The values, if each of a column has one."""
    return values if values.null_count == column.null_count else None


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


def _times(column: pa.Array, zone: str | None) -> pa.Array | None:
    """Times in microseconds, floored; of a wall clock where they have no zone and it is given."""
    ticks = pc.fill_null(column.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    unit = column.type.unit
    if unit == "ns":
        ticks, unit = np.floor_divide(ticks, 1_000), "us"
    most = LAST_MICROS // UNITS[unit]
    if ((ticks < FIRST_MICROS // UNITS[unit]) | (ticks > most)).any():
        return None
    none = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    micros = pa.array(ticks * UNITS[unit], pa.int64(), mask=none)
    if zone is None or column.type.tz is not None:
        return micros.cast(INSTANT)
    return _whole(instants(micros.cast(WALL), zone), column)
