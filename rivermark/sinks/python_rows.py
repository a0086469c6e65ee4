"""Rows as Python objects, also where they have times that Python has not: beyond the year 9999."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import types

from rivermark.lake.quoting import quoted
from rivermark.lake.sql import spilling_connection
from rivermark.model.json_text import far_date, far_time
from rivermark.model.rows import PIECE, BatchRows


def python_rows(
    rows: pa.Table | pa.RecordBatch, spell: Callable[[str], str] = str
) -> list[dict[str, Any]]:
    """The rows; times that Python has not, however deep, are texts, as `spell` spells ISO 8601.

    Such texts have a sign before a year beyond 9999: `+10000-01-01T00:00:00Z`, `-0043-03-15`.
    """
    for n, field in enumerate(rows.schema):
        if types.is_float32(field.type):
            # The double with the digits of the float: 0.1, and not 0.10000000149011612.
            digits = rows.column(n).cast(pa.string()).cast(pa.float64())
            rows = rows.set_column(n, field.name, digits)
    try:
        objects: list[dict[str, Any]] = rows.to_pylist()
    except (OverflowError, ValueError):
        columns = [[_value(each, spell) for each in column] for column in rows.columns]
        return [
            dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)
        ]
    return objects


def _value(scalar: pa.Scalar, spell: Callable[[str], str]) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        kind = scalar.type
    if types.is_timestamp(kind):
        return spell(far_time(scalar.value, kind.unit) + "Z")
    if types.is_date(kind):
        return spell(far_date(scalar.cast(pa.date32()).value))
    if types.is_struct(kind):
        return {name: _value(each, spell) for name, each in scalar.items()}
    if types.is_map(kind):
        parts = [[_value(each, spell) for each in scalar.values.field(n)] for n in (0, 1)]
        return [*zip(*parts, strict=True)]
    return [_value(each, spell) for each in scalar.values]


def in_order(rows: BatchRows, columns: Sequence[str], by: str) -> Iterator[pa.Table]:
    """These columns of the rows in pieces, ascending; those of many are sorted on disk."""
    readable = rows.readable()
    if isinstance(readable, pa.Table):
        yield readable.select(list(columns)).sort_by(by)
        return
    names = ", ".join(map(quoted, columns))
    sql = f"SELECT {names} FROM rows ORDER BY {quoted(by)} NULLS LAST"  # noqa: S608
    with spilling_connection({"rows": readable}) as duckdb:
        for batch in duckdb.sql(sql).to_arrow_reader(PIECE):
            yield pa.Table.from_batches([batch])
