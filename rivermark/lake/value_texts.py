"""Numbers, times and texts of Arrow columns, as `rivermark.model.json_text` writes them."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from rivermark.model.json_text import PER_SECOND, far_date, far_time, json_text

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999."""
OTHER_DIGITS: Final = r"e|^-?0\.00000"
"""Doubles beyond ten digits, or below a hundred thousandth: Arrow gives them other texts."""


def float_texts(column: pa.Array) -> pa.Array:
    """The fewest digits that mean each; NaN and the infinities in quotes."""
    if t.is_float16(column.type):
        column = column.cast(pa.float32())
    texts = column.cast(pa.string())
    texts = rewritten(texts, pc.match_substring_regex(texts, OTHER_DIGITS), _double)
    whole = pc.match_substring_regex(texts, r"^-?\d+$")
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    return rewritten(texts, pc.invert(pc.is_finite(column)), _double)


def _double(text: str) -> str:
    return json_text(float(text)).decode()


def decimal_texts(column: pa.Array) -> pa.Array:
    """All digits, without an exponent."""
    texts = column.cast(pa.string())
    return rewritten(texts, pc.match_substring(texts, "E"), lambda text: f"{Decimal(text):f}")


def time_texts(column: pa.Array) -> pa.Array:
    """ISO 8601 without a zone: six digits of a fraction, or none; below a microsecond floored."""
    none, unit = column.is_null(), column.type.unit
    ticks = pc.fill_null(column.view(pa.int64()), 0).to_numpy(zero_copy_only=False)
    if unit == "ns":
        ticks, unit = np.floor_divide(ticks, 1_000), "us"
    second = PER_SECOND[unit]
    wild = (ticks < FIRST_SECOND * second) | (ticks > LAST_SECOND * second + second - 1)
    seconds, rest = np.divmod(np.where(wild, 0, ticks), second)
    texts = pa.array(seconds).cast(pa.timestamp("s")).cast(pa.string())
    texts = pc.binary_replace_slice(texts, 10, 11, "T")
    if rest.any():
        micros = pa.array(rest * (1_000_000 // second)).cast(pa.string())
        fractions = pc.binary_join_element_wise(".", pc.utf8_lpad(micros, 6, "0"), "")
        fractions = pc.if_else(pa.array(rest != 0), fractions, "")
        texts = pc.binary_join_element_wise(texts, fractions, "")
    return pc.if_else(none, None, _far(texts, ticks, wild, partial(far_time, unit=unit)))


def date_texts(column: pa.Array) -> pa.Array:
    """ISO 8601."""
    days = column.cast(pa.date32())
    numbers = pc.fill_null(days.cast(pa.int32()), 0).to_numpy(zero_copy_only=False)
    wild = (numbers < FIRST_DAY) | (numbers > LAST_DAY)
    texts = pa.array(np.where(wild, 0, numbers)).cast(pa.date32()).cast(pa.string())
    return pc.if_else(days.is_null(), None, _far(texts, numbers, wild, far_date))


def _far(
    texts: pa.Array, numbers: np.ndarray, wild: np.ndarray, write: Callable[[int], str]
) -> pa.Array:
    """The texts, those that are marked as times beyond the years 1 to 9999."""
    if not wild.any():
        return texts
    shown = pa.array([write(n) for n in numbers[wild].tolist()], pa.string())
    return pc.replace_with_mask(texts, pa.array(wild), shown)


def clock_texts(column: pa.Array) -> pa.Array:
    """Times of day in ISO 8601: six digits of a fraction, or none."""
    texts = column.cast(pa.time64("us"), safe=False).cast(pa.string())
    return pc.replace_substring_regex(texts, r"\.0+$", "")


def utf8_texts(column: pa.Array, odd: Callable[[bytes], str]) -> pa.StringArray:
    """Texts of what a file calls texts or bytes; `odd` writes those that are no UTF-8."""
    column = column.cast(pa.binary())
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return each(column, lambda value: decoded(value, odd))


def odd_text(value: bytes) -> str:
    """Bytes that are no UTF-8 with replacement characters, which no row is admitted with."""
    return value.decode(errors="replace")


def decoded(value: bytes, odd: Callable[[bytes], str]) -> str:
    """The text of bytes; `odd` writes those that are none."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return odd(value)


def each(column: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    """The values that are there, written one by one."""
    values = column.to_pylist()
    return pa.array([None if v is None else write(v) for v in values], pa.string())


def rewritten(texts: pa.Array, where: pa.Array, write: Callable[[str], str]) -> pa.Array:
    """The texts, those that are marked rewritten; few are."""
    where = pc.fill_null(where, False)
    if not pc.any(where, min_count=0).as_py():
        return texts
    return pc.replace_with_mask(texts, where, each(texts.filter(where), write))
