"""The fast lane: rows that are plainly well-formed become typed columns, many at a time.

The lane says of a row that it is typed, or that the parser has to be asked; never that it is bad.
What it types, the parser would type the same: the lane knows only the plain ones of the spellings
that the parser takes, and proves of a line that nothing else stands in it (`shapes`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.cast import Target, cast_rows
from rivermark.ingest.parse.cutter import places_of
from rivermark.ingest.parse.lane.column import Column
from rivermark.ingest.parse.lane.lines import REPLACED, Lines, Mask, Places
from rivermark.ingest.parse.lane.shapes import MOST_VALUES, Shape, cut_csv, cut_json, shape_of
from rivermark.ingest.parse.lane.values import Values
from rivermark.model.contract import MAX_ROW_BYTES
from rivermark.model.source import Columns

ROWS: Final = 8_192
"""Rows that are looked at together: with their text they fit the processor's cache."""
MOST_SHAPES: Final = 16
"""Shapes that are known at a time; lines of more kinds are left to the parser."""
SAMPLES: Final = 7
"""Lines that are looked at for a new shape: any of them may be one that no shape fits."""
NEW_SHAPES: Final = 4
"""Shapes that are learned at most from rows that are looked at together."""


@dataclass
class Typed:
    """Columns by field, and the rows whose values stand in them; the others are to be asked for.

    The columns of `texts` are not typed: their fields have readers that the lane does not know.
    """

    columns: dict[str, pa.Array]
    good: Mask
    texts: frozenset[str] = frozenset()

    def take(self, rows: Places) -> Typed:
        """The rows in another order."""
        order = pa.array(rows)
        columns = {name: column.take(order) for name, column in self.columns.items()}
        return Typed(columns, self.good[rows], self.texts)


class Lane:
    """Types lines of one ingest; it learns the shapes of its JSON lines from them."""

    def __init__(
        self,
        columns: Sequence[Column],
        delimiter: str,
        max_bytes: int = MAX_ROW_BYTES,
        targets: Sequence[Target] = (),
    ) -> None:
        self.typed = frozenset(column.name for column in columns if column.read is not None)
        self._columns = columns
        self._targets = targets
        self._delimiter = delimiter
        self._max_bytes = max_bytes
        self._lower = {key.lower() for column in columns for key in column.keys}
        self._shapes: list[Shape] = []

    def type(
        self,
        payloads: pa.Array,
        formats: pa.Array,
        columns: pa.Array,
        known: Sequence[Columns] = (),
    ) -> Typed:
        """Type payloads by the formats and columns (as JSON) of their files.

        `known` are the columns that some of them were: those are cast.
        """
        parts: list[Typed] = []
        orders: list[Places] = []
        rest: Mask = np.ones(len(payloads), np.bool_)
        for each in known:
            own = payloads.slice(each.first, each.rows.num_rows)
            parts.append(Typed(*cast_rows(self._targets, own, each, self._max_bytes)))
            orders.append(np.arange(each.first, each.first + each.rows.num_rows))
            rest[orders[-1]] = False
        if rest.any() or not parts:
            for (kind, names), rows in groups_of(formats, columns).items():
                own_rows = rows[rest[rows]] if parts else rows
                own = payloads if len(own_rows) == len(rest) else payloads.take(pa.array(own_rows))
                for first in range(0, max(len(own), 1), ROWS):
                    parts.append(self._type(own.slice(first, ROWS), kind, json.loads(names)))
                orders.append(own_rows)
        typed = Typed(
            {
                column.name: pa.concat_arrays([part.columns[column.name] for part in parts])
                for column in self._columns
            },
            np.concatenate([part.good for part in parts]),
            frozenset(column.name for column in self._columns if column.read is None),
        )
        order = np.concatenate(orders)
        if (order[1:] > order[:-1]).all():
            return typed
        return typed.take(np.argsort(order))

    def _type(self, payloads: pa.StringArray, kind: str, names: Sequence[str]) -> Typed:
        lines = Lines(payloads)
        if kind == "csv" and len(self._delimiter.encode()) == 1 and len(names) <= MOST_VALUES:
            cells, good = self._cut_csv(lines, names)
        elif kind in ("csv", "text"):
            cells, good = [no_value(lines)] * len(self._columns), np.zeros(len(lines), np.bool_)
        else:
            cells, good = self._cut_json(lines)
        replaced = lines.holds(REPLACED)
        if replaced is not None:
            good &= ~replaced
        good &= lines.ends - lines.starts <= self._max_bytes
        columns = {}
        for column, cell in zip(self._columns, cells, strict=True):
            columns[column.name], plain = column.read_all(cell)
            good &= plain
        return Typed(columns, good)

    def _cut_csv(self, lines: Lines, names: Sequence[str]) -> tuple[list[Values], Mask]:
        cells, good = cut_csv(lines, len(names), self._delimiter.encode())
        return self._picked(lines, places_of(names), cells), good

    def _picked(
        self, lines: Lines, place_of: Mapping[str, int], cells: Sequence[Values]
    ) -> list[Values]:
        """The value of each column: the first of its keys that has one."""
        return [
            first_of(lines, [cells[place_of[key]] for key in column.keys if key in place_of])
            for column in self._columns
        ]

    def _cut_json(self, lines: Lines) -> tuple[list[Values], Mask]:
        good: Mask = np.zeros(len(lines), np.bool_)
        rest = np.arange(len(lines))
        for doubtful in (lines.holds(b"\\"), lines.with_control()):
            if doubtful is not None:
                rest = rest[~doubtful[rest]]
        cells: list[Values] | None = None
        tried: list[Shape] = []
        known = iter([*self._shapes])
        while len(rest):
            shape = next(known, None)
            is_new = shape is None
            if shape is None:
                # For few rows too: a shape costs a millisecond, to ask the parser many.
                if len(tried) == NEW_SHAPES:
                    break
                shape = self._new_shape(lines, rest, tried)
                if shape is None:
                    break
                tried.append(shape)
            own = lines if len(rest) == len(lines) else lines.take(rest)
            cut = cut_json(own, shape)
            count = int(cut.good.sum())
            if (is_new and count) or count > len(lines) // 2:
                self._remember(shape, first=count > len(lines) // 2)
            if not count:
                continue
            picked = self._picked(own, self._places(shape), cut.values)
            if count == len(lines):
                return picked, cut.good
            cells = cells or [no_value(lines) for _ in self._columns]
            rows = rest[cut.good]
            for cell, part in zip(cells, picked, strict=True):
                cell.put(rows, part, cut.good)
            good[rows] = True
            rest = rest[~cut.good]
        return cells or [no_value(lines) for _ in self._columns], good

    def _remember(self, shape: Shape, *, first: bool) -> None:
        """Keep a shape; the one that is tried first is that of most lines."""
        others = [s for s in self._shapes if s != shape]
        at = 0 if first else min(1, len(others))
        self._shapes = [*others[:at], shape, *others[at:]][:MOST_SHAPES]

    def _new_shape(self, lines: Lines, rest: Places, tried: Sequence[Shape]) -> Shape | None:
        """A shape that is not known yet, of one of some of these lines."""
        places = dict.fromkeys(rest[np.linspace(0, len(rest) - 1, SAMPLES, dtype=int)].tolist())
        known = [*self._shapes, *tried]
        shapes = (shape_of(lines.text_of(place)) for place in places)
        return next((shape for shape in shapes if shape and shape not in known), None)

    def _places(self, shape: Shape) -> dict[str, int]:
        """Where the value of a key stands, in any letter case where it does not exactly."""
        exact = {key: n for n, key in enumerate(shape.keys) if key is not None}
        lower = {key.lower(): n for key, n in exact.items()}
        return {key: n for key, n in lower.items() if key in self._lower} | exact


def no_value(lines: Lines) -> Values:
    """A value that no line has."""
    return Values(lines, lines.starts.copy(), lines.starts.copy(), np.ones(len(lines), np.bool_))


def first_of(lines: Lines, values: Sequence[Values]) -> Values:
    """The first value that a line has."""
    if not values:
        return no_value(lines)
    first = values[0]
    for other in values[1:]:
        if not first.absent.any():
            break
        first = first.or_else(other)
    return first


def groups_of(formats: pa.Array, columns: pa.Array) -> dict[tuple[str, str], Places]:
    """The rows of each format and list of columns. Only those of CSV lines matter."""
    runs = [pc.run_end_encode(pc.fill_null(each, "")) for each in (formats, columns)]
    ends = np.unique(np.concatenate([run.run_ends.to_numpy() for run in runs]))
    groups: dict[tuple[str, str], list[Places]] = {}
    first = 0
    for end in ends.tolist():
        kind, names = (each[first].as_py() for each in (formats, columns))
        key = (kind or "", names if kind == "csv" and names else "[]")
        groups.setdefault(key, []).append(np.arange(first, end))
        first = end
    return {key: np.concatenate(rows) for key, rows in groups.items()} or {("", "[]"): ends}
