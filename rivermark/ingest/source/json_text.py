"""Arrow columns as JSON text, exactly and without a Python object for each value.

Numbers are written with all their digits, times in microseconds (floored), texts as text where
their bytes are UTF-8.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from rivermark.ingest.source.json_words import (
    date_texts,
    decimal_texts,
    each,
    escaped,
    float_texts,
    quoted_times,
    replaced,
    time_texts,
    utf8_texts,
)
from rivermark.ingest.source.payload import json_value


def json_values(column: pa.Array, matters: bool, instant: bool) -> tuple[str, pa.Array, str]:
    """The texts of a column, null where it has no value, and what stands around each of them."""
    kind = column.type
    if isinstance(kind, pa.UuidType):
        return "", each(column, json_value), ""
    if isinstance(kind, pa.BaseExtensionType):
        return json_values(column.storage, matters, instant)
    if t.is_dictionary(kind):
        return json_values(column.dictionary_decode(), matters, instant)
    if t.is_null(kind):
        return "", pa.nulls(len(column), pa.string()), ""
    if t.is_boolean(kind) or t.is_integer(kind):
        return "", column.cast(pa.string()), ""
    if t.is_duration(kind):
        return '"', column.cast(pa.int64()).cast(pa.string()), f' {kind.unit}"'
    if t.is_floating(kind):
        return "", float_texts(column), ""
    if t.is_decimal(kind):
        return "", decimal_texts(column), ""
    if t.is_timestamp(kind):
        texts, regular = time_texts(column)
        utc = "Z" if instant or kind.tz is not None else ""
        return ('"', texts, f'{utc}"') if regular else ("", quoted_times(texts, utc), "")
    if t.is_date(kind):
        return '"', date_texts(column), '"'
    if t.is_time(kind):
        return '"', column.cast(pa.string()), '"'
    if t.is_nested(kind):
        return "", nested_texts(column, matters), ""
    return '"', escaped(utf8_texts(column, matters)), '"'


def nested_texts(column: pa.Array, matters: bool) -> pa.Array:
    """Structs, maps and lists, from the texts of what they hold; null where they are null."""
    kind = column.type
    if t.is_struct(kind):
        texts = struct_texts(column, matters)
    elif t.is_map(kind):
        texts = bracketed("{", map_entries(column, matters), np.diff(column.offsets), "}")
    else:
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        texts = bracketed("[", inner_texts(pc.list_flatten(column), matters), lengths, "]")
    return pc.if_else(column.is_valid(), texts, None)


def inner_texts(column: pa.Array, matters: bool) -> pa.Array:
    """The values of a nested column: bytes as base64, decimals as texts, null as a word."""
    kind = column.type
    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_fixed_size_binary(kind):
        texts = each(column, json_value)
    else:
        quote = '"' if t.is_decimal(kind) else ""
        before, texts, behind = json_values(column, matters, False)
        texts = pc.binary_join_element_wise(quote + before, texts, behind + quote, "")
    return pc.fill_null(texts, "null")


def struct_texts(column: pa.StructArray, matters: bool) -> pa.Array:
    """Structs as objects; a name that is there twice stays so."""
    names = [json.dumps(field.name, ensure_ascii=False) for field in column.type]
    members = [
        pc.binary_join_element_wise(f"{name}: ", inner_texts(column.field(n), matters), "")
        for n, name in enumerate(names)
    ]
    inner = pc.binary_join_element_wise(*members, ", ") if members else ""
    return pc.binary_join_element_wise(pa.repeat("{", len(column)), inner, "}", "")


def map_entries(column: pa.MapArray, matters: bool) -> pa.Array:
    """The members of all maps, one behind the other; a key that is there twice stays so."""
    first, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
    keys, values = (inner_texts(part[first:end], matters) for part in (column.keys, column.items))
    keys = replaced(keys, pc.invert(pc.starts_with(keys, '"')), json.dumps)
    return pc.binary_join_element_wise(keys, values, ": ")


def bracketed(opening: str, items: pa.Array, lengths: Any, closing: str) -> pa.Array:
    """So many of the items each time, in brackets."""
    offsets = pa.array(np.append(0, np.cumsum(lengths)), pa.int32())
    inner = pc.binary_join(pa.ListArray.from_arrays(offsets, items), ", ")
    return pc.binary_join_element_wise(opening, inner, closing, "")
