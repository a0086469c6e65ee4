"""Rows that were columns before they became JSON: the lane reads the texts of their columns.

They are the texts that the cutter finds in the payloads, but for what is escaped there; so rows
whose payloads hold a backslash are asked for, like those that the lane asks for in any format.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as t

from rivermark.ingest.parse.lane.column import Column
from rivermark.ingest.parse.lane.lines import REPLACED, Lines, Mask
from rivermark.ingest.parse.lane.values import Values
from rivermark.model.source import ColumnTexts


def are_enough(texts: ColumnTexts, keys: Collection[str]) -> bool:
    """Whether all that keys (in lower case) may refer to is known, each by one column alone."""
    names = [name.lower() for name, _ in texts.columns]
    unknown = {name.lower() for name, column in texts.columns if column is None}
    return len(set(names)) == len(names) and unknown.isdisjoint(keys)


def read_texts(
    columns: Sequence[Column], payloads: pa.StringArray, texts: ColumnTexts, most: int
) -> tuple[dict[str, pa.Array], Mask]:
    """The values of rows whose payloads have up to `most` bytes, and which rows are plain."""
    lines = Lines(payloads)
    good: Mask = lines.ends - lines.starts <= most
    for byte in (b"\\", REPLACED):
        doubtful = lines.holds(byte)
        if doubtful is not None:
            good &= ~doubtful
    exact = dict(texts.columns)
    named = {name.lower(): column for name, column in texts.columns} | exact
    values = {}
    for column in columns:
        own = {id(named[key]): named[key] for key in column.keys if key in named}
        values[column.name], plain = _read(column, [*own.values()], len(payloads))
        good &= plain
    return values, good


def _read(column: Column, texts: Sequence[pa.Array], count: int) -> tuple[pa.Array, Mask]:
    """The values of the first of some texts that each row has."""
    if not texts:
        return column.none(count)
    values, plain = _read_one(column, texts[0])
    valid = texts[0].is_valid()
    for other in texts[1:]:
        if pc.all(valid).as_py():
            break
        more, more_plain = _read_one(column, other)
        values = pc.if_else(valid, values, more)
        plain = np.where(valid.to_numpy(zero_copy_only=False), plain, more_plain)
        valid = pc.or_(valid, other.is_valid())
    return values, plain


def _read_one(column: Column, texts: pa.Array) -> tuple[pa.Array, Mask]:
    if t.is_dictionary(texts.type):
        return column.read_coded(_values(texts.dictionary), texts.indices)
    return column.read_all(_values(texts))


def _values(texts: pa.StringArray) -> Values:
    absent = texts.is_null().to_numpy(zero_copy_only=False)
    lines = Lines(pc.fill_null(texts, "") if texts.null_count else texts)
    return Values(lines, lines.starts, lines.ends, absent)
