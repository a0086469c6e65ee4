"""Arrow columns as JSON, with the texts of `rivermark.model.json_text`, many at a time.

What repeats is written once: amounts and codes of thousands of rows have few different values.
DuckDB's `to_json` takes as long, and writes 1.10 as 1.1 and the float 0.1 as 0.10000000149011612.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from rivermark.model.json_text import PER_SECOND, far_date, far_time, json_text

MOST_BYTES: Final = 32 << 20
"""Larger batches are cut: a text column of Arrow holds 2 GiB, and an escape is six characters."""
SAMPLE: Final = 256
"""Values that are looked at for whether a column repeats itself."""
FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999."""
NEEDS_ESCAPE: Final = r'["\\\x00-\x1f]'
OTHER_DIGITS: Final = r"e|^-?0\.00000"
"""Doubles beyond ten digits, or below a hundred thousandth: Arrow gives them other texts."""
BITS: Final = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}


def json_objects(rows: pa.RecordBatch) -> pa.StringArray:
    """Each row as one JSON object, in which a value that is null is left out.

    A decimal that is a column of its own is a number, with all its digits.
    """
    if rows.nbytes > MOST_BYTES and rows.num_rows > 1:
        half = rows.num_rows // 2
        return pa.concat_arrays([json_objects(rows.slice(0, half)), json_objects(rows.slice(half))])
    pieces: list[Any] = []
    is_open = bool(rows.num_columns) and not rows.columns[0].null_count
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        mark = "{" if is_open and not pieces else ","
        pieces += _member(f"{mark}{_quoted(name)}:", column)
    if not pieces:
        return pa.array(["{}"] * rows.num_rows, pa.string())
    merged: list[Any] = []
    for piece in [*pieces, "}"]:
        if merged and isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    texts = pc.binary_join_element_wise(*merged, "")
    if not is_open:
        # The first comma makes room for the brace; a row of nulls has none.
        texts = pc.binary_replace_slice(texts, 0, 1, "{")
        texts = pc.if_else(pc.equal(texts, "{"), "{}", texts)
    return texts


def plain_texts(column: pa.Array) -> pa.StringArray:
    """Each value as the text that it is in JSON, without quotes and escapes; null where null."""
    if t.is_string(column.type):
        return column
    if t.is_dictionary(column.type):
        return plain_texts(column.dictionary_decode())
    before, texts, behind = _written(column)
    if before:
        return pc.binary_join_element_wise(texts, behind.removesuffix('"'), "")
    return _rewritten(texts, pc.starts_with(texts, '"'), lambda text: text[1:-1])


def utf8_texts(column: pa.Array, odd: Callable[[bytes], str]) -> pa.StringArray:
    """Texts of what a file calls texts or bytes; `odd` writes those that are no UTF-8."""
    column = column.cast(pa.binary())
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        return _each(column, lambda value: decoded(value, odd))


def odd_text(value: bytes) -> str:
    """Bytes that are no UTF-8 with replacement characters, which no row is admitted with."""
    return value.decode(errors="replace")


def decoded(value: bytes, odd: Callable[[bytes], str]) -> str:
    """The text of bytes; `odd` writes those that are none."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return odd(value)


def _member(key: str, column: pa.Array) -> list[Any]:
    """The pieces of a column's members, to be joined: nothing where it has no value."""
    coded = _coded(column)
    if coded is not None:
        members = _whole(coded.dictionary, key).take(coded.indices)
    elif column.null_count:
        members = _whole(column, key)
    else:
        before, texts, behind = _written(column)
        return [key + before, texts, behind]
    return [pc.fill_null(members, "")]


def _whole(column: pa.Array, key: str = "") -> pa.Array:
    """The texts with their quotes; null where the column is."""
    before, texts, behind = _written(column)
    return pc.binary_join_element_wise(key + before, texts, behind, "")


def _inner(column: pa.Array, key: str = "") -> pa.Array:
    """The same within a nested column, where null is a word and a decimal a text."""
    quote = '"' if t.is_decimal(column.type) else ""
    before, texts, behind = _written(column)
    texts = pc.binary_join_element_wise(key + quote + before, texts, behind + quote, "")
    return pc.fill_null(texts, f"{key}null")


def _coded(column: pa.Array) -> pa.DictionaryArray | None:
    """The column as a dictionary, where its first values say that they repeat."""
    kind = column.type
    if t.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    bits = BITS.get(kind)
    if bits is not None:
        column = column.view(bits)  # By its bits: -0.0 is another text than 0.0.
    elif not (t.is_integer(kind) or t.is_string(kind)):
        return None
    sample = column.slice(0, SAMPLE)
    if len(column) < 2 * SAMPLE or (not bits and pc.count_distinct(sample).as_py() * 2 > SAMPLE):
        return None
    coded = column.dictionary_encode()
    if bits is None:
        return coded
    return pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.view(kind))


def _written(column: pa.Array) -> tuple[str, pa.Array, str]:
    """The texts of a column, null where it has no value, and what stands around each of them."""
    kind = column.type
    if isinstance(kind, pa.UuidType):
        return '"', _each(column, str), '"'
    if isinstance(kind, pa.BaseExtensionType):
        return _written(column.storage)
    if t.is_dictionary(kind):
        return _written(column.dictionary_decode())
    if t.is_null(kind):
        return "", pa.nulls(len(column), pa.string()), ""
    if t.is_boolean(kind) or t.is_integer(kind):
        return "", column.cast(pa.string()), ""
    if t.is_floating(kind):
        return "", _floats(column), ""
    if t.is_decimal(kind):
        texts = column.cast(pa.string())
        return "", _rewritten(texts, pc.match_substring(texts, "E"), _without_exponent), ""
    if t.is_timestamp(kind):
        return '"', _times(column, kind.unit), '"' if kind.tz is None else 'Z"'
    if t.is_date(kind):
        return '"', _dates(column), '"'
    if t.is_time(kind):
        return '"', _without_zeros(column.cast(pa.time64("us"), safe=False).cast(pa.string())), '"'
    if t.is_duration(kind):
        return '"', column.cast(pa.int64()).cast(pa.string()), f' {kind.unit}"'
    if t.is_struct(kind) or t.is_map(kind):
        return "", _objects(column), ""
    if t.is_nested(kind):
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        return "", _bracketed("[", _inner(pc.list_flatten(column)), lengths, "]", column), ""
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return '"', _escaped(utf8_texts(column, odd_text)), '"'
    return "", _each(column, lambda value: json_text(value).decode()), ""


def _floats(column: pa.Array) -> pa.Array:
    if t.is_float16(column.type):
        column = column.cast(pa.float32())
    texts = column.cast(pa.string())
    texts = _rewritten(texts, pc.match_substring_regex(texts, OTHER_DIGITS), _double)
    whole = pc.match_substring_regex(texts, r"^-?\d+$")
    texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    return _rewritten(texts, pc.invert(pc.is_finite(column)), _double)


def _double(text: str) -> str:
    return json_text(float(text)).decode()


def _without_exponent(text: str) -> str:
    return f"{Decimal(text):f}"


def _times(column: pa.Array, unit: str) -> pa.Array:
    """ISO 8601 without a zone: six digits of a fraction, or none; below a microsecond floored."""
    none = column.is_null()
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


def _dates(column: pa.Array) -> pa.Array:
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


def _without_zeros(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, r"\.0+$", "")


def _objects(column: pa.Array) -> pa.Array:
    """Structs and maps; a name or key that is there twice stays so."""
    if t.is_map(column.type):
        first, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
        keys, values = (_inner(part[first:end]) for part in (column.keys, column.items))
        keys = _rewritten(keys, pc.invert(pc.starts_with(keys, '"')), _quoted)
        entries = pc.binary_join_element_wise(keys, values, ":")
        return _bracketed("{", entries, np.diff(column.offsets), "}", column)
    members = [
        _inner(column.field(n), f"{_quoted(field.name)}:") for n, field in enumerate(column.type)
    ]
    inner = pc.binary_join_element_wise(*members, ",") if members else ""
    texts = pc.binary_join_element_wise(pa.repeat("{", len(column)), inner, "}", "")
    return pc.if_else(column.is_valid(), texts, None)


def _bracketed(opening: str, items: pa.Array, lengths: Any, closing: str, of: pa.Array) -> pa.Array:
    """So many of the items each time, in brackets; null where the column is."""
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    inner = pc.binary_join(pa.ListArray.from_arrays(offsets, items), ",")
    texts = pc.binary_join_element_wise(opening, inner, closing, "")
    return pc.if_else(of.is_valid(), texts, None)


def _escaped(texts: pa.Array) -> pa.Array:
    where = pc.match_substring_regex(texts, NEEDS_ESCAPE)
    return _rewritten(texts, where, lambda text: _quoted(text)[1:-1])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _each(column: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    """The values that are there, written one by one."""
    values = column.to_pylist()
    return pa.array([None if v is None else write(v) for v in values], pa.string())


def _rewritten(texts: pa.Array, where: pa.Array, write: Callable[[str], str]) -> pa.Array:
    """The texts, those that are marked rewritten; few are."""
    where = pc.fill_null(where, False)
    if not pc.any(where, min_count=0).as_py():
        return texts
    return pc.replace_with_mask(texts, where, _each(texts.filter(where), write))
