"""Lines that Arrow's readers of JSON and CSV make columns of, many at a time: typed, or asked.

Of a line it is said that it is typed, or that the careful parser has to be asked; never that it is
bad. What is typed is what that parser would make of the line: here stands what has to hold beside
Arrow's own strictness (it refuses repeated keys, wrong kinds, overflow and rounding).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse import typed_csv, typed_json
from rivermark.ingest.parse.field_column import FieldColumn
from rivermark.ingest.parse.text_bytes import REPLACED, lengths_of, with_text
from rivermark.lake.dictionary_texts import as_dictionary

Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
ROWS: Final = 8_192
"""Lines that are read together."""
MOST_BYTES: Final = 16 << 20
"""The same in bytes: one reader takes up to 2 GB, and a few wide lines cost no other."""
FEWEST: Final = 12
"""Lines from which on it takes less time than to ask for each."""


@dataclass(frozen=True)
class Typed:
    """Columns by field, and the rows that stand in them; the others are to be asked for."""

    columns: dict[str, pa.Array]
    good: Mask


@dataclass(frozen=True)
class TypedRead:
    """Types lines for some fields."""

    fields: Sequence[FieldColumn]
    delimiter: str
    max_bytes: int

    def read(self, payloads: pa.Array, formats: pa.Array, columns: pa.Array) -> Typed:
        """Type payloads by the formats and columns (as JSON) of their files."""
        good: Mask = np.zeros(len(payloads), np.bool_)
        places: list[Places] = []
        parts: list[list[pa.Array]] = []
        candidates: Mask = lengths_of(payloads) <= self.max_bytes
        if (replaced := with_text(payloads, REPLACED)) is not None:
            candidates &= ~replaced.to_numpy(zero_copy_only=False)
        for (kind, names), rows in groups_of(formats, columns).items():
            own = rows[candidates[rows]]
            if kind == "text" or len(own) < FEWEST:
                continue
            for block in _blocks(payloads, own):
                lines = _taken(payloads, block)
                pieces = (
                    typed_csv.read(self.fields, lines, names, self.delimiter)
                    if kind == "csv"
                    else typed_json.read(self.fields, lines)
                )
                for read, arrays in pieces:
                    fine, values = self._values(arrays, len(read))
                    whole = fine.true_count == len(read)
                    parts.append(values if whole else [v.filter(fine) for v in values])
                    places.append(block[read][fine.to_numpy(zero_copy_only=False)])
        if not parts:
            return Typed({f.name: pa.nulls(0, f.values.type) for f in self.fields}, good)
        order = np.concatenate(places)
        good[order] = True
        table = {f.name: pa.concat_arrays([p[n] for p in parts]) for n, f in enumerate(self.fields)}
        if not (order[1:] > order[:-1]).all():
            sorting = pa.array(np.argsort(order))
            table = {name: column.take(sorting) for name, column in table.items()}
        return Typed(table, good)

    def _values(self, arrays: Sequence[pa.Array], count: int) -> tuple[pa.Array, list[pa.Array]]:
        """The values of columns of texts, or of values already, and in which rows all are good."""
        fine, values = pa.array(np.ones(count, np.bool_)), []
        for field, array in zip(self.fields, arrays, strict=True):
            if pa.types.is_string(array.type):
                column, good = field.read(array)
            else:
                column = field.values.converted(array)
                good = field.good(column, array)
            values.append(column)
            fine = pc.and_(fine, good)
        return fine, values


def _taken(payloads: pa.Array, rows: Places) -> pa.Array:
    if rows[-1] - rows[0] == len(rows) - 1:
        return payloads.slice(rows[0], len(rows))
    return payloads.take(pa.array(rows))


def _blocks(payloads: pa.Array, rows: Places) -> list[Places]:
    """The rows in parts of up to so many lines and bytes."""
    sizes = lengths_of(payloads)[rows].astype(np.int64)
    if sizes.sum() <= MOST_BYTES:
        return [rows[n : n + ROWS] for n in range(0, len(rows), ROWS)]
    parts, first, held = [], 0, 0
    for n, size in enumerate(sizes.tolist()):
        if n > first and (held + size > MOST_BYTES or n - first == ROWS):
            parts.append(rows[first:n])
            first, held = n, 0
        held += size
    return [*parts, rows[first:]]


def groups_of(formats: pa.Array, columns: pa.Array) -> dict[tuple[str, tuple[str, ...]], Places]:
    """The rows of each format and list of columns. Only those of CSV lines matter."""
    codes = (pc.fill_null(as_dictionary(c).indices, -1).to_numpy() for c in (formats, columns))
    changes = [np.flatnonzero(own[1:] != own[:-1]) + 1 for own in codes]
    ends = np.unique(np.concatenate([*changes, [len(formats)]])) if len(formats) else changes[0]
    groups: dict[tuple[str, str], list[Places]] = {}
    first = 0
    for end in ends.tolist():
        kind, names = (each[first].as_py() or "" for each in (formats, columns))
        key = (kind, names if kind == "csv" and names else "[]")
        groups.setdefault(key, []).append(np.arange(first, end))
        first = end
    return {(k, tuple(json.loads(n))): np.concatenate(rows) for (k, n), rows in groups.items()}
