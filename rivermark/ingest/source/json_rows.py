"""Arrow rows as JSON objects, and the texts of their columns.

Null is left out of an object, as Spark's `to_json` leaves it out. What repeats is written once:
amounts and codes of thousands of rows have few different values.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from rivermark.ingest.source.json_text import json_values
from rivermark.ingest.source.json_words import replaced
from rivermark.ingest.source.payload import JsonRecords, joined
from rivermark.model.source import ColumnTexts

MOST_BYTES: Final = 32 << 20
"""Larger batches are cut: a text column of Arrow holds 2 GiB, and an escape is six characters."""
SAMPLE: Final = 256
"""Values that are looked at for whether a column repeats itself."""
BITS: Final = {pa.float64(): pa.int64(), pa.float32(): pa.int32()}


def json_objects(
    batch: pa.RecordBatch, wanted: Collection[str] | None, instants: Collection[str] = ()
) -> pa.StringArray:
    """Each row as one JSON object, as `json_records` writes it."""
    return json_records(batch, wanted, instants).payloads


def json_records(
    batch: pa.RecordBatch, wanted: Collection[str] | None, instants: Collection[str] = ()
) -> JsonRecords:
    """Each row as one JSON object.

    `wanted` are the columns that matter, in lower case, or None for all: what is no text in one of
    them becomes replacement characters, which no row is admitted with, and in any other base64.
    Another column that has no form in JSON is left out. Times of `instants` are in UTC though their
    type does not say so.
    """
    if batch.nbytes > MOST_BYTES and batch.num_rows > 1:
        half = batch.num_rows // 2
        parts = (batch.slice(0, half), batch.slice(half))
        return joined([json_records(part, wanted, instants) for part in parts])
    pieces: list[Any] = []
    columns: list[tuple[str, pa.Array | None]] = []
    opened = False
    for field, column in zip(batch.schema, batch.columns, strict=True):
        matters = wanted is None or field.name.lower() in wanted
        try:
            before, texts, behind = _values(column, matters, field.name in instants)
        except Exception:
            if matters:
                raise
            continue
        columns.append((field.name, _alone(before, texts, behind) if matters else None))
        if not pieces and not texts.null_count:
            opened = True
        comma = "," if pieces or not opened else "{"
        key = f"{comma}{json.dumps(field.name, ensure_ascii=False)}:{before}"
        pieces += _members(key, texts, behind)
    if not pieces:
        return JsonRecords(pa.array(["{}"] * batch.num_rows, pa.string()))
    rows = pc.binary_join_element_wise(*_merged([*pieces, "}"]), "")
    if not opened:
        # The first comma makes room for the brace; a row of nulls has none.
        rows = pc.binary_replace_slice(rows, 0, 1, "{")
        rows = pc.if_else(pc.equal(rows, "{"), "{}", rows)
    if any(map(_is_nested, batch.schema.types)):
        return JsonRecords(rows)
    return JsonRecords(rows, (ColumnTexts(0, len(rows), columns),))


def _values(column: pa.Array, matters: bool, instant: bool) -> tuple[str, pa.Array, str]:
    """What `json_values` returns; the texts in a dictionary where values repeat."""
    coded = _coded(column)
    if coded is None:
        return json_values(column, matters, instant)
    before, texts, behind = json_values(coded.dictionary, matters, instant)
    return before, pa.DictionaryArray.from_arrays(coded.indices, texts), behind


def _coded(column: pa.Array) -> pa.DictionaryArray | None:
    """The column as a dictionary, where its first values say that they repeat."""
    if t.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    bits = BITS.get(kind)
    if bits is not None:
        column = column.view(bits)  # By its bits: -0.0 is another text than 0.0.
    elif not (t.is_integer(kind) or t.is_string(kind) or t.is_binary(kind)):
        return None
    if len(column) < 2 * SAMPLE or pc.count_distinct(column.slice(0, SAMPLE)).as_py() * 2 > SAMPLE:
        return None
    coded = column.dictionary_encode()
    if bits is None:
        return coded
    return pa.DictionaryArray.from_arrays(coded.indices, coded.dictionary.view(kind))


def _is_nested(kind: pa.DataType) -> bool:
    """Whether its values may be lists or objects in JSON."""
    if isinstance(kind, pa.BaseExtensionType):
        return _is_nested(kind.storage_type)
    return _is_nested(kind.value_type) if t.is_dictionary(kind) else t.is_nested(kind)


def _members(key: str, texts: pa.Array, behind: str) -> list[Any]:
    """What is joined to the members of a column: nothing where it has no value."""
    if t.is_dictionary(texts.type):
        texts = pc.binary_join_element_wise(key, texts.dictionary, behind, "").take(texts.indices)
    elif texts.null_count:
        texts = pc.binary_join_element_wise(key, texts, behind, "")
    else:
        return [key, texts, behind]
    return [pc.fill_null(texts, "") if texts.null_count else texts]


def _merged(pieces: list[Any]) -> list[Any]:
    """The pieces, with words that follow each other as one."""
    merged: list[Any] = []
    for piece in pieces:
        if merged and isinstance(piece, str) and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    return merged


def _alone(before: str, texts: pa.Array, behind: str) -> pa.Array:
    """The values as the texts that they are in JSON, without quotes and as they are escaped."""
    if t.is_dictionary(texts.type):
        values = _alone(before, texts.dictionary, behind)
        return pa.DictionaryArray.from_arrays(texts.indices, values)
    if before:
        rest = behind.removesuffix('"')
        return pc.binary_join_element_wise(texts, rest, "") if rest else texts
    return replaced(texts, pc.starts_with(texts, '"'), lambda text: text[1:-1])
