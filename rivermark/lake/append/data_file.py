"""Rows as one data file of a table, and what a reader may skip it by: the `add` of a commit."""

from __future__ import annotations

import json
import math
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

TEXT: Final = 32
"""Characters of a text that its bounds keep, as with Delta on Spark."""
MANY: Final = 10_000
"""Rows from which on it is worth to look which columns repeat themselves."""
SAMPLE: Final = 1_024
LAST: Final = "\U0010ffff"

Tree = dict[str, Any]
"""JSON values by column, already as text; a struct's are a tree of its own."""


def write_data_file(folder: Path, rows: pa.Table, skipped_by: list[tuple[str, ...]]) -> Tree:
    """Write the rows to a new file of the table's folder; returns the action that adds it.

    `skipped_by` are the columns, each with the path to it through structs, that get statistics.
    Until a commit names it the file belongs to nothing, and maintenance removes it.
    """
    name = f"part-00000-{uuid.uuid4()}-c000.snappy.parquet"
    path = folder / name
    # As integers: Spark reads decimals of up to 18 digits faster so. Delta keeps the schema itself.
    pq.write_table(
        rows,
        path,
        store_decimal_as_integer=True,
        store_schema=False,
        use_dictionary=repeating(rows),
    )
    return {
        "add": {
            "path": name,
            "partitionValues": {},
            "size": path.stat().st_size,
            "modificationTime": time.time_ns() // 1_000_000,
            "dataChange": True,
            "stats": statistics_of(rows, skipped_by),
        }
    }


def repeating(rows: pa.Table) -> list[str] | bool:
    """The columns whose values repeat, by a look at the first ones: those get a dictionary.

    For a column of measurements a dictionary is built, found to be too large and given up, which
    took more than half of the time that typed rows took to be written.
    """
    if rows.num_rows < MANY:
        return True
    names = []
    for field in rows.schema:
        if pa.types.is_nested(field.type):
            continue  # Lists of names, mostly empty.
        values = rows[field.name].slice(0, SAMPLE)
        if pc.count_distinct(values).as_py() <= SAMPLE // 2:
            names.append(field.name)
    return names


def statistics_of(rows: pa.Table, columns: list[tuple[str, ...]]) -> str:
    """The statistics of the rows as JSON ("Per-file Statistics" of the Delta protocol).

    A bound that cannot be told exactly is left out, never guessed: a reader would skip rows.
    """
    smallest: Tree = {}
    largest: Tree = {}
    nulls: Tree = {}
    for path in columns:
        column = _column(rows, path)
        _put(nulls, path, str(column.null_count))
        for side, bound in zip((smallest, largest), _bounds(column), strict=True):
            if bound is not None:
                _put(side, path, bound)
    texts = {"numRecords": str(rows.num_rows), "minValues": smallest, "maxValues": largest}
    return _json({**texts, "nullCount": nulls})


def leaves(schema: pa.Schema) -> Iterator[tuple[str, ...]]:
    """The columns that statistics can be of, in order, those within structs one by one."""
    for field in schema:
        yield from _leaves(field)


def _leaves(field: pa.Field) -> Iterator[tuple[str, ...]]:
    if pa.types.is_struct(field.type):
        for inner in field.type:
            for path in _leaves(inner):
                yield (field.name, *path)
    else:
        yield (field.name,)


def _column(rows: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    column = rows[path[0]]
    for name in path[1:]:
        column = pc.struct_field(column, name)
    return column


def _bounds(column: pa.ChunkedArray) -> tuple[str | None, str | None]:
    """The least and the greatest value as JSON; None where JSON cannot hold it."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind):
        return None, None
    if pa.types.is_floating(kind) and pc.any(pc.is_nan(column)).as_py():
        return None, None
    ends = pc.min_max(column)
    return _least(ends["min"]), _greatest(ends["max"])


def _least(bound: pa.Scalar) -> str | None:
    value = _python(bound)
    return _literal(value[:TEXT] if isinstance(value, str) else value)


def _greatest(bound: pa.Scalar) -> str | None:
    value = _python(bound)
    if isinstance(value, str) and len(value) > TEXT:
        # Not below the text that was cut: whatever follows, this follows it.
        value = None if value[TEXT] == LAST else value[:TEXT] + LAST
    return _literal(value)


def _python(bound: pa.Scalar) -> Any:
    try:
        return bound.as_py()
    except (ValueError, OverflowError):
        return None  # A moment that Python cannot name.


def _literal(value: object) -> str | None:
    match value:
        case datetime():
            return f'"{value.astimezone(UTC).replace(tzinfo=None).isoformat("T", "microseconds")}Z"'
        case date():
            return f'"{value.isoformat()}"'
        case Decimal():
            return f"{value:f}"  # With all its digits: a float has 15.
        case float() if not math.isfinite(value):
            return None
        case bool() | int() | float() | str():
            return json.dumps(value)
    return None


def _put(tree: Tree, path: tuple[str, ...], text: str) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _json(value: Tree | str) -> str:
    if isinstance(value, str):
        return value
    return "{" + ",".join(f"{json.dumps(k)}:{_json(v)}" for k, v in value.items()) + "}"
