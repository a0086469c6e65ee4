"""Typed columns of plain numbers; the casts cannot fail on what is let through to them."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.lane.lines import Mask, Places
from rivermark.ingest.parse.lane.values import Values, read_numbers

LONG_DIGITS: Final = 18
"""Digits of which any number fits a long."""
FRACTION: Final = 9
"""Zeros behind a whole number's point, of which more are not plain."""
COMMA: Final = ord(",")


def integers(values: Values, kind: pa.DataType, *, comma: bool = False) -> tuple[pa.Array, Mask]:
    """Whole numbers of a type, and which values are plainly such."""
    read = read_numbers(values, COMMA) if comma else values.numbers
    good = read.plain & read.whole & (read.digits <= LONG_DIGITS) & (read.fraction <= FRACTION)
    column = pc.cast(values.lines.texts(values.starts, read.point, ~good), pa.int64())
    if kind == pa.int64():
        return column, good
    bounds = np.iinfo(kind.to_pandas_dtype())
    plain = pc.fill_null(column, 0).to_numpy()
    held: Mask = (plain >= bounds.min) & (plain <= bounds.max)
    if not held.all():
        good &= held
        column = pc.if_else(pa.array(good), column, None)
    return pc.cast(column, kind), good


def decimals(values: Values, kind: pa.DataType, *, comma: bool = False) -> tuple[pa.Array, Mask]:
    """Decimals, rounded half up, and which values are plainly such.

    Those of more than 18 digits only where nothing is rounded.
    """
    read = read_numbers(values, COMMA) if comma else values.numbers
    good = read.plain & (read.digits <= kind.precision - kind.scale)
    cut = good & (read.fraction > kind.scale)
    if kind.precision > LONG_DIGITS or not cut.any():
        good &= ~cut
        return pc.cast(_with_points(values.texts(good), comma), kind), good
    last = read.point + (kind.scale + 1 if kind.scale else 0)
    texts = values.lines.texts(values.starts, np.where(cut, last, values.ends), ~good)
    data = values.lines.bytes
    up = cut & (data[np.where(cut, read.point + kind.scale + 1, 0)] >= ord("5"))
    sign = np.where(data[values.starts] == ord("-"), -1, 1)
    return _moved(pc.cast(_with_points(texts, comma), kind), np.where(up, sign, 0), good)


def _moved(column: pa.Array, by: Places, good: Mask) -> tuple[pa.Array, Mask]:
    """Decimals with units of their last digit added, and those of the good ones that still fit."""
    valid, data = column.buffers()
    words = np.frombuffer(data, np.int64, 2 * len(column), 16 * column.offset).reshape(-1, 2).copy()
    words[:, 0] += by
    fits: Mask = np.abs(words[:, 0]) < 10**column.type.precision
    words[~fits] = 0
    words[:, 1] = words[:, 0] >> 63
    moved = pa.Array.from_buffers(column.type, len(column), [valid, pa.py_buffer(words)])
    return moved, good & fits


def doubles(values: Values, kind: pa.DataType, *, comma: bool = False) -> tuple[pa.Array, Mask]:
    """Doubles, correctly rounded; and which values are plain numbers."""
    good = (read_numbers(values, COMMA) if comma else values.numbers).plain
    if not comma and kind == pa.float64():
        good = good | values.with_exponent
    column = pc.cast(_with_points(values.texts(good), comma), pa.float64())
    return (column if kind == pa.float64() else pc.cast(column, kind)), good


def _with_points(texts: pa.StringArray, comma: bool) -> pa.StringArray:
    return pc.replace_substring(texts, ",", ".") if comma else texts
