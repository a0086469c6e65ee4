"""Columns of texts that repeat, dictionary-encoded: each text is held, hashed and written once.

A table's writer takes them for texts (`TableFiles.write`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pyarrow as pa

ENCODED: Final = pa.dictionary(pa.int32(), pa.string())


def with_dictionaries(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """The schema with the texts among these columns as dictionaries."""
    return pa.schema(
        [
            field.with_type(ENCODED) if field.name in names and field.type == pa.string() else field
            for field in schema
        ]
    )


def as_dictionary(texts: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """Texts as one dictionary array."""
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    return whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()


def as_texts(rows: pa.Table) -> pa.Table:
    """The rows with plain texts."""
    return rows.cast(pa.schema([field.with_type(text_type(field.type)) for field in rows.schema]))


def text_type(kind: pa.DataType) -> pa.DataType:
    """The type of the values, be they in a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind
