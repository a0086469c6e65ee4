"""Parts of conditions that Spark evaluates, once for each different value that they depend on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivermark.ingest.parse.lane.lines import Mask, Places
from rivermark.ingest.parse.rules.expression import Expression
from rivermark.ingest.parse.rules.vector import Vector, vector_of

FEW: Final = 256
"""Of so many different values Spark is asked in any case, and of one in `SHARE` rows."""
SHARE: Final = 16

Ask = Callable[[Sequence[Expression], pa.Table], pa.Table | None]
"""What Spark makes of expressions, a column each, for rows with the columns they refer to.

None where it raises: then it is in doubt for every row."""


@dataclass(frozen=True)
class PartValues:
    """A part's different values, and which of them each row has."""

    values: pa.Array
    codes: Places

    def of(self, rows: slice) -> Vector:
        """The values of some rows; one for all where there is only one."""
        if len(self.values) == 1:
            return vector_of(self.values)
        return vector_of(self.values.take(pa.array(self.codes[rows])))


def part_values(
    parts: Collection[Expression], rows: pa.Table, ask: Ask, raising: set[Expression]
) -> dict[Expression, PartValues]:
    """The values of those parts that depend on few different ones.

    All parts are sent together: a question has its price, a row hardly any. One that raises,
    because what guards it is not part of it, is put among the `raising` and never sent again.
    """
    parts = [part for part in parts if part not in raising]
    coded: dict[str, tuple[Places, int]] = {}
    groups: dict[frozenset[str], tuple[slice, Places]] = {}
    sent, count = [rows.schema.empty_table()], 0
    most = max(FEW, rows.num_rows // SHARE)
    for inputs in {part.inputs for part in parts}:
        different = _different(rows, sorted(inputs), coded, most)
        if different is not None:
            codes, places = different
            groups[inputs] = slice(count, count + len(places)), codes
            some = rows.select(sorted(inputs)).take(pa.array(places))
            sent.append(some if inputs else pa.table({"_": places}))
            count += len(places)
    wanted = [part for part in parts if part.inputs in groups]
    if not wanted:
        return {}
    table = pa.concat_tables(sent, promote_options="default").select(rows.schema.names)
    columns = ask(wanted, table)
    if columns is None:
        raised = [part for part in wanted if len(wanted) == 1 or ask([part], table) is None]
        raising.update(raised)
        return part_values(parts, rows, ask, raising) if raised else {}
    values = {}
    for part, column in zip(wanted, columns.columns, strict=True):
        own, codes = groups[part.inputs]
        values[part] = PartValues(column.combine_chunks()[own], codes)
    return values


def _different(
    rows: pa.Table, names: Sequence[str], coded: dict[str, tuple[Places, int]], most: int
) -> tuple[Places, Places] | None:
    """The different values of columns: which one a row has, and a row that has it.

    None where there are too many of them.
    """
    codes, count = np.zeros(rows.num_rows, np.int64), 1
    for name in names:
        if name not in coded:
            column = rows[name].combine_chunks().dictionary_encode()
            own = pc.fill_null(column.indices, -1).to_numpy().astype(np.int64) + 1
            coded[name] = own, len(column.dictionary) + 1
        own, own_count = coded[name]
        if own_count > most + 1:
            return None
        codes, count = _dense(codes * own_count + own, count * own_count)
        if count > most:
            return None
    places: Places = np.zeros(count, np.int64)
    places[codes] = np.arange(rows.num_rows)
    return codes, places


def _dense(codes: Places, count: int) -> tuple[Places, int]:
    """Codes without those that no row has."""
    present: Mask = np.zeros(count, np.bool_)
    present[codes] = True
    return (np.cumsum(present) - 1)[codes], int(present.sum())
