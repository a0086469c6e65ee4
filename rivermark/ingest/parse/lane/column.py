"""A field as the lane reads it: which values are its own, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.lane.distinct import distinct
from rivermark.ingest.parse.lane.lines import Lines, Mask
from rivermark.ingest.parse.lane.values import Values
from rivermark.ingest.parse.lane.words import texts

Read = Callable[[Values], tuple[pa.Array, Mask]]


@dataclass(frozen=True)
class Column:
    """A field: where its value is looked up, in turn, its words for 'no value', and its reader.

    Without a reader the column holds texts, about which nothing is said.
    """

    name: str
    keys: tuple[str, ...]
    nulls: tuple[str, ...]
    required: bool
    read: Read | None

    def read_all(self, values: Values) -> tuple[pa.Array, Mask]:
        """The values of some rows, and which rows are plain as far as they go."""
        few = distinct(values)
        return self._read_each(values) if few is None else self.read_coded(*few)

    def read_coded(self, different: Values, codes: pa.Array) -> tuple[pa.Array, Mask]:
        """The same of rows by which of the different values they have; null where none."""
        column, plain = self._read_each(different)
        if not codes.null_count:
            return column.take(codes), plain[codes.to_numpy()]
        plain = np.append(plain, not self.required)
        return column.take(codes), plain[pc.fill_null(codes, len(column)).to_numpy()]

    def none(self, count: int) -> tuple[pa.Array, Mask]:
        """The same of rows that have no value."""
        nothing = Lines(pa.array([], pa.string()))
        column, _ = self._read_each(
            Values(nothing, nothing.starts, nothing.ends, nothing.starts > 0)
        )
        return pa.nulls(count, column.type), np.full(count, not self.required)

    def _read_each(self, values: Values) -> tuple[pa.Array, Mask]:
        values = values.without(self.nulls)
        column, read = (self.read or texts)(values)
        return column, read & ~values.absent if self.required else read | values.absent
