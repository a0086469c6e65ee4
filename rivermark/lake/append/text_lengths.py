"""CHAR(n) and VARCHAR(n), which Spark keeps beside a table's texts and enforces in its own writes.

To Delta they are texts like others, so that neither delta-rs nor this room's writer would know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from rivermark.lake.dictionary_texts import text_type
from rivermark.model.errors import RivermarkError

KEY: Final = "__CHAR_VARCHAR_TYPE_STRING"
"""Where Spark keeps the declared type, in the metadata of a column."""
DECLARED: Final = re.compile(r"(var)?char\((\d+)\)")

Lengths = Mapping[str, str]
"""The declared type of each column that has one, such as `varchar(5)`."""


def lengths_of(metadata: Mapping[str, Any]) -> Lengths:
    """The declared lengths by a table's metadata."""
    fields = json.loads(metadata["schemaString"])["fields"]
    return {f["name"]: f["metadata"][KEY] for f in fields if KEY in f["metadata"]}


def fit_texts(rows: pa.Table, lengths: Lengths) -> pa.Table:
    """The rows as Spark would store them: blanks at the end cut, or added for CHAR.

    Raises:
        RivermarkError: for a longer text, and for a length within a struct, list or map.
    """
    for name in lengths.keys() & set(rows.column_names):
        declared = DECLARED.fullmatch(lengths[name])
        if declared is None:
            raise RivermarkError(
                f"column '{name}' is declared as {lengths[name]}: lengths of texts inside other "
                "types are enforced by Spark alone; write it by Spark, or declare STRING"
            )
        fixed, most = declared[1] is None, int(declared[2])
        texts = rows[name].cast(text_type(rows[name].type))
        if (pc.max(pc.utf8_length(texts)).as_py() or 0) > most:
            kept = pc.utf8_slice_codeunits(texts, 0, most)
            beyond = pc.utf8_slice_codeunits(texts, most)
            longer = pc.greater(pc.utf8_length(pc.utf8_rtrim(beyond, " ")), 0)
            if pc.any(longer).as_py():
                text = texts.filter(longer)[0].as_py()
                raise RivermarkError(
                    f"column '{name}' is declared as {lengths[name]}, and a text has "
                    f"{len(text)} characters: {text[:40]!r}"
                )
            texts = kept
        if fixed:
            texts = pc.utf8_rpad(texts, most)
        rows = rows.set_column(rows.column_names.index(name), name, texts)
    return rows
