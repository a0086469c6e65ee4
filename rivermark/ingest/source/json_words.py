"""Numbers, times and texts of Arrow columns as they stand in JSON."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

MICROS: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}
FIRST_SECOND: Final = -62_135_596_800
LAST_SECOND: Final = 253_402_300_799
"""The years 1 to 9999."""
FIRST_DAY: Final = -719_162
LAST_DAY: Final = 2_932_896
NEEDS_ESCAPE: Final = r'["\\\x00-\x1f]'


def each(column: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    """The values that are there, written one by one."""
    values = column.to_pylist()
    return pa.array([None if v is None else write(v) for v in values], pa.string())


def replaced(texts: pa.Array, where: pa.Array, write: Callable[[str], str]) -> pa.Array:
    """The texts, those that are marked rewritten; few are."""
    where = pc.fill_null(where, False)
    if not pc.any(where).as_py():
        return texts
    return pc.replace_with_mask(texts, where, each(texts.filter(where), write))


def float_texts(column: pa.Array) -> pa.Array:
    """The shortest text that means the same double; infinities and NaN as texts.

    Amounts repeat, so each pattern of bits is written once: a million taxi rows take 2.3 CPU-s
    instead of 5.1.
    """
    if t.is_float16(column.type):
        column = column.cast(pa.float32())
    bits = column.view(pa.int64() if t.is_float64(column.type) else pa.int32()).dictionary_encode()
    values = bits.dictionary.view(column.type)
    return float_words(values).take(bits.indices)


def float_words(column: pa.Array) -> pa.Array:
    """The text of each double."""
    texts = column.cast(pa.string())
    whole = pc.match_substring_regex(texts, r"^-?\d+$")
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    words = {"inf": '"Infinity"', "-inf": '"-Infinity"'}
    return replaced(texts, pc.invert(pc.is_finite(column)), lambda text: words.get(text, '"NaN"'))


def decimal_texts(column: pa.Array) -> pa.Array:
    """All digits, without an exponent."""
    texts = column.cast(pa.string())
    return replaced(texts, pc.match_substring(texts, "E"), lambda text: f"{Decimal(text):f}")


def time_texts(column: pa.Array) -> tuple[pa.Array, bool]:
    """ISO-8601 in microseconds, and whether all are times of the years 1 to 9999.

    Others become their number and unit, which no reader takes for a time.
    """
    unit = column.type.unit
    numbers = column.view(pa.int64())
    none = column.is_null() if column.null_count else None
    values = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
    if unit == "ns":
        # Floor, not truncation: a nanosecond before 1970 lies in the microsecond before.
        values, unit = np.floor_divide(values, 1_000), "us"
    second = 1_000_000 // MICROS[unit]
    wild = (values < FIRST_SECOND * second) | (values > LAST_SECOND * second + second - 1)
    micros = np.where(wild, 0, values) * MICROS[unit]
    texts = pa.array(micros).cast(pa.timestamp("us")).cast(pa.string())
    texts = pc.binary_replace_slice(texts, 10, 11, "T")
    if wild.any():
        shown = pa.array([f"{n} {unit}" for n in values[wild].tolist()], pa.string())
        texts = pc.replace_with_mask(texts, pa.array(wild), shown)
    if none is not None:
        texts = pc.if_else(none, pa.scalar(None, pa.string()), texts)
    return texts, not wild.any()


def quoted_times(texts: pa.Array, utc: str) -> pa.Array:
    """Times with their zone, in quotes; those that are none have no zone."""
    zone = pc.if_else(pc.match_substring(texts, " "), "", utc)
    return pc.binary_join_element_wise('"', texts, zone, '"', "")


def date_texts(column: pa.Array) -> pa.Array:
    """ISO-8601 dates; those beyond the years 1 to 9999 as their number of days."""
    days = column.cast(pa.date32())
    numbers = days.cast(pa.int32())
    wild = pc.or_(pc.less(numbers, FIRST_DAY), pc.greater(numbers, LAST_DAY))
    return pc.if_else(
        wild,
        pc.binary_join_element_wise(numbers.cast(pa.string()), "days", " "),
        days.cast(pa.string()),
    )


def utf8_texts(column: pa.Array, matters: bool) -> pa.Array:
    """Texts, whatever the file calls its bytes."""
    column = column.cast(pa.binary())
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return each(column, lambda value: decoded(value, matters))


def decoded(value: bytes, matters: bool) -> str:
    """The text of bytes; where they have none, with replacement characters or as base64."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode(errors="replace") if matters else b64encode(value).decode()


def escaped(texts: pa.Array) -> pa.Array:
    """The texts as they stand between a JSON text's quotes."""
    where = pc.match_substring_regex(texts, NEEDS_ESCAPE)
    return replaced(texts, where, lambda text: json.dumps(text, ensure_ascii=False)[1:-1])
