"""Lines that Arrow's readers of JSON and CSV make columns of, many at a time: typed, or asked.

Of a line it is said that it is typed, or that the careful parser has to be asked; never that it is
bad. What is typed is what that parser would make of the line: here stands what has to hold beside
Arrow's own strictness (it refuses repeated keys, wrong kinds, overflow and rounding).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from rivermark.ingest.parse import typed_json
from rivermark.ingest.parse.cutter import places_of
from rivermark.ingest.parse.field_column import FieldColumn
from rivermark.ingest.parse.text_bytes import REPLACED, lengths_of, with_text
from rivermark.ingest.parse.typed_json import FEWEST, Piece
from rivermark.lake.dictionary_texts import as_dictionary

Mask = npt.NDArray[np.bool_]
MOST_COLUMNS: Final = 1_000
MOST_WIDTHS: Final = 3
"""Numbers of values a line that are tried: of some years' files, most lines end in empty ones."""
ENDINGS: Final = ("\n", "\r", "\0")
"""Characters that Arrow takes for the end of a line, or of a text."""


def read_csv(
    fields: Sequence[FieldColumn], lines: pa.StringArray, names: Sequence[str], delimiter: str
) -> Iterator[Piece]:
    """The lines that are read, in pieces with as many values a line."""
    place_of = places_of(names)
    wanted = [[place_of[key] for key in f.spelled.keys if key in place_of] for f in fields]
    used = {place for places in wanted for place in places}
    if len(delimiter.encode()) != 1 or len(names) > MOST_COLUMNS or not used:
        return
    rest = np.flatnonzero(_well_formed(lines, delimiter))
    for _ in range(MOST_WIDTHS):
        if len(rest) < FEWEST:
            return
        own = lines if len(rest) == len(lines) else lines.take(pa.array(rest))
        first = own[0].as_py()
        width = len(names) if '"' in first else first.count(delimiter) + 1
        if not len(names) <= width <= 2 * len(names):
            width = len(names)
        table, fits = _read(own, width, delimiter, used, len(names))
        yield rest[fits], [_first(table, places) for places in wanted]
        rest = rest[~fits]


def _well_formed(lines: pa.StringArray, delimiter: str) -> Mask:
    """Mask of the lines with quotes around whole values alone, and none within them."""
    good = pc.invert(pc.starts_with(lines, "\ufeff"))
    good = pc.and_(good, pa.array(lengths_of(lines) > 0))
    for ending in ENDINGS:
        if (held := with_text(lines, ending)) is not None:
            good = pc.and_not(good, held)
    if (quoted := with_text(lines, '"')) is not None:
        mark = re.escape(delimiter)
        value = f'(?:"[^"]*"|[^"{mark}]*)'
        plain = pc.match_substring_regex(lines, f"^{value}(?:{mark}{value})*$")
        good = pc.and_(good, pc.or_(pc.invert(quoted), plain))
    mask: Mask = good.to_numpy(zero_copy_only=False)
    return mask


def _read(
    lines: pa.StringArray, width: int, delimiter: str, wanted: set[int], count: int
) -> tuple[pa.Table, Mask]:
    """The wanted columns of lines with so many values, of which those behind `count` are empty."""
    fits: Mask = np.ones(len(lines), np.bool_)

    def skip(row: pcsv.InvalidRow) -> str:
        fits[row.number - 1] = False
        return "skip"

    behind = [str(n) for n in range(count, width)]
    chosen = [*(str(n) for n in sorted(wanted)), *behind]
    whole = pa.ListArray.from_arrays(pa.array([0, len(lines)], pa.int32()), lines)
    data = pc.binary_join(whole, "\n")[0].as_buffer()
    table = pcsv.read_csv(
        pa.BufferReader(data),
        pcsv.ReadOptions(
            use_threads=False,
            column_names=[str(n) for n in range(width)],
            block_size=data.size + 2,
        ),
        pcsv.ParseOptions(delimiter=delimiter, ignore_empty_lines=False, invalid_row_handler=skip),
        pcsv.ConvertOptions(
            check_utf8=False,
            include_columns=chosen,
            column_types=dict.fromkeys(chosen, pa.string()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    ).combine_chunks()
    for name in behind:
        if table[name].null_count < table.num_rows:
            empty = table[name].is_null()
            fits[np.flatnonzero(fits)] = empty.to_numpy()
            table = table.filter(empty)
    return table, fits


def _first(table: pa.Table, places: Sequence[int]) -> pa.Array:
    """The first text that each line has in some columns."""
    columns = [table[str(n)].combine_chunks() for n in dict.fromkeys(places)]
    if not columns:
        return pa.nulls(table.num_rows, pa.string())
    return columns[0] if len(columns) == 1 else pc.coalesce(*columns)


Places = npt.NDArray[np.int64]
ROWS: Final = 8_192
"""Lines that are read together."""
MOST_BYTES: Final = 16 << 20
"""The same in bytes: one reader takes up to 2 GB, and a few wide lines cost no other."""


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
                    read_csv(self.fields, lines, names, self.delimiter)
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
