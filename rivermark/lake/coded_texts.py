"""Columns of texts that repeat, as codes: each text is held, hashed and written once.

Arrow calls them dictionaries. A table's writer takes them for texts (`TableFiles.write`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pyarrow as pa

CODED: Final = pa.dictionary(pa.int32(), pa.string())


def coded(schema: pa.Schema, names: Collection[str]) -> pa.Schema:
    """The schema with the texts among these columns as codes."""
    return pa.schema(
        [
            field.with_type(CODED) if field.name in names and field.type == pa.string() else field
            for field in schema
        ]
    )


def encoded(texts: pa.Array | pa.ChunkedArray) -> pa.DictionaryArray:
    """Texts as codes, in one array."""
    whole = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    return whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()


def decoded(rows: pa.Table) -> pa.Table:
    """The rows with texts in place of codes."""
    return rows.cast(pa.schema([field.with_type(text_type(field.type)) for field in rows.schema]))


def text_type(kind: pa.DataType) -> pa.DataType:
    """The type of values, be they given as codes."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind
