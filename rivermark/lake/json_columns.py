"""Arrow columns as JSON, with the texts of `rivermark.model.json_text`, many at a time.

What repeats is written once: amounts and codes of thousands of rows have few different values.
DuckDB's `to_json` takes as long, and writes 1.10 as 1.1 and the float 0.1 as 0.10000000149011612.
"""

from __future__ import annotations

import json
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from rivermark.lake.value_texts import (
    clock_texts,
    date_texts,
    decimal_texts,
    each,
    float_texts,
    odd_text,
    rewritten,
    time_texts,
    utf8_texts,
)
from rivermark.model.json_text import json_text

MOST_BYTES: Final = 32 << 20
"""Larger batches are cut: a text column of Arrow holds 2 GiB, and an escape is six characters."""
SAMPLE: Final = 256
"""Values that are looked at for whether a column repeats itself."""
NEEDS_ESCAPE: Final = r'["\\\x00-\x1f]'
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
    if _is_text(column.type):
        return utf8_texts(column, odd_text)
    if t.is_dictionary(column.type):
        return plain_texts(column.dictionary_decode())
    before, texts, behind = _written(column)
    if before:
        return pc.binary_join_element_wise(texts, behind.removesuffix('"'), "")
    return rewritten(texts, pc.starts_with(texts, '"'), lambda text: text[1:-1])


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


def _is_text(kind: pa.DataType) -> bool:
    return any(is_one(kind) for is_one in (t.is_string, t.is_large_string, t.is_string_view))


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
        return '"', each(column, str), '"'
    if isinstance(kind, pa.BaseExtensionType):
        return _written(column.storage)
    if t.is_dictionary(kind):
        return _written(column.dictionary_decode())
    if t.is_null(kind):
        return "", pa.nulls(len(column), pa.string()), ""
    if t.is_boolean(kind) or t.is_integer(kind):
        return "", column.cast(pa.string()), ""
    if t.is_floating(kind):
        return "", float_texts(column), ""
    if t.is_decimal(kind):
        return "", decimal_texts(column), ""
    if t.is_timestamp(kind):
        return '"', time_texts(column), '"' if kind.tz is None else 'Z"'
    if t.is_date(kind):
        return '"', date_texts(column), '"'
    if t.is_time(kind):
        return '"', clock_texts(column), '"'
    if t.is_duration(kind):
        return '"', column.cast(pa.int64()).cast(pa.string()), f' {kind.unit}"'
    if t.is_struct(kind) or t.is_map(kind):
        return "", _objects(column), ""
    if t.is_nested(kind):
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        return "", _bracketed("[", _inner(pc.list_flatten(column)), lengths, "]", column), ""
    if _is_text(kind):
        texts = utf8_texts(column, odd_text)
        where = pc.match_substring_regex(texts, NEEDS_ESCAPE)
        return '"', rewritten(texts, where, lambda text: _quoted(text)[1:-1]), '"'
    return "", each(column, lambda value: json_text(value).decode()), ""


def _objects(column: pa.Array) -> pa.Array:
    """Structs and maps; a name or key that is there twice stays so."""
    if t.is_map(column.type):
        first, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
        keys, values = (_inner(part[first:end]) for part in (column.keys, column.items))
        keys = rewritten(keys, pc.invert(pc.starts_with(keys, '"')), _quoted)
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


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
