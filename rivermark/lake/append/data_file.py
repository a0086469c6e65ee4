"""Rows as one data file of a table, and what a reader may skip it by: the `add` of a commit.

By the driver and by tasks of executors alike: nothing here knows of a log or of a session.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rivermark.lake.filesystem import filesystem
from rivermark.lake.full_disk import naming
from rivermark.lake.integrity.data_file_check import name_with_checksum

TEXT: Final = 32
"""Characters of a text that its bounds keep, as with Delta on Spark."""
MANY: Final = 10_000
"""Rows from which on it is worth to look which columns repeat themselves."""
SAMPLE: Final = 1_024
LAST: Final = "\U0010ffff"

Tree = dict[str, Any]
"""JSON values by column, already as text; a struct's are a tree of its own."""


def write_data_file(folder: str, rows: pa.Table, skipped_by: list[tuple[str, ...]]) -> Tree:
    """Write the rows to a new file in the table's folder or URI; returns the action that adds it.

    `skipped_by` are the columns, each with the path to it through structs, that get statistics.
    Until a commit names it the file belongs to nothing, and maintenance removes it.
    """
    content = pa.BufferOutputStream()
    pq.write_table(
        rows,
        content,
        # Spark reads decimals of up to 18 digits faster so.
        store_decimal_as_integer=True,
        # Delta keeps it itself.
        store_schema=False,
        use_dictionary=repeating(rows),
        write_statistics=_without_nan(rows),
        # Of bits flipped one by one 63 % gave other rows and no error without them.
        write_page_checksum=True,
    )
    file = content.getvalue()
    name = name_with_checksum(f"part-00000-{uuid.uuid4()}-c000.snappy.parquet", file)
    store, base = filesystem(folder)
    path = f"{base.rstrip('/')}/{name}"
    try:
        with naming(path), store.open_output_stream(path) as stream:
            stream.write(file)
    except BaseException:
        with suppress(OSError):
            store.delete_file(path)
        raise
    return {
        "add": {
            "path": name,
            "partitionValues": {},
            "size": file.size,
            "modificationTime": time.time_ns() // 1_000_000,
            "dataChange": True,
            "stats": statistics_of(rows, skipped_by),
        }
    }


def removal(name: str, size: int, *, data_change: bool) -> Tree:
    """The action that takes a file out of a table, by its name as the log spells it."""
    return {
        "remove": {
            "path": name,
            "deletionTimestamp": time.time_ns() // 1_000_000,
            "dataChange": data_change,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": size,
        }
    }


def rows_of_files(adds: Iterable[Tree]) -> int:
    """The number of rows in data files, by the actions that add them."""
    return sum(json.loads(each["add"]["stats"])["numRecords"] for each in adds)


def remove_files(folder: str, adds: Iterable[Tree]) -> None:
    """Remove data files that no commit names; what cannot be removed is left to maintenance."""
    store, base = filesystem(folder)
    for each in adds:
        with suppress(OSError):
            store.delete_file(f"{base.rstrip('/')}/{each['add']['path']}")


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
        if pa.types.is_dictionary(field.type) or pc.count_distinct(values).as_py() <= SAMPLE // 2:
            names.append(field.name)
    return names


def _without_nan(rows: pa.Table) -> list[str] | bool:
    """The columns that get statistics in the file itself.

    Parquet's bounds leave NaN out, and Spark, to which it is a value, skips by them all the same.
    """
    columns = [*leaves(rows.schema)]
    without = [path for path in columns if not _has_nan(column_at(rows, path))]
    return True if without == columns else [".".join(path) for path in without]


def _has_nan(column: pa.ChunkedArray) -> bool:
    return pa.types.is_floating(column.type) and bool(pc.any(pc.is_nan(column)).as_py())


def statistics_of(rows: pa.Table, columns: list[tuple[str, ...]]) -> str:
    """The statistics of the rows as JSON ("Per-file Statistics" of the Delta protocol).

    A column's bounds hold every value of it. Where those of any column cannot be told (NaN and
    infinity are no JSON), the file has no bounds at all: of bounds that lack one column delta-rs
    makes a condition on null in `to_pyarrow_dataset`, by which the file's rows are lost.
    """
    bounds: dict[tuple[str, ...], tuple[str, str] | None] = {}
    nulls: Tree = {}
    for path in columns:
        column = column_at(rows, path)
        _put(nulls, path, str(column.null_count))
        if pa.types.is_dictionary(column.type):
            column = column.unique().drop_null().cast(column.type.value_type)
            column = pa.chunked_array([column])
        if column.null_count < len(column) and _has_bounds(column.type):
            bounds[path] = _bounds(column)
    texts: Tree = {"numRecords": str(rows.num_rows)}
    if None not in bounds.values():
        smallest: Tree = {}
        largest: Tree = {}
        for path, ends in bounds.items():
            if ends is not None:
                _put(smallest, path, ends[0])
                _put(largest, path, ends[1])
        texts |= {"minValues": smallest, "maxValues": largest}
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


def column_at(rows: pa.Table, path: tuple[str, ...]) -> pa.ChunkedArray:
    """The values of a column, by the path to it through structs."""
    column = rows[path[0]]
    for name in path[1:]:
        # By its place: a name that begins with a dot would be taken for a path.
        column = pc.struct_field(column, column.type.get_field_index(name))
    return column


def _has_bounds(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_null(kind))


def _bounds(column: pa.ChunkedArray) -> tuple[str, str] | None:
    """The least and the greatest value as JSON; None where JSON cannot hold them."""
    if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
        return None
    ends = pc.min_max(column)
    try:
        return _least(ends["min"].as_py()), _greatest(ends["max"].as_py())
    except (ValueError, OverflowError):
        return None  # A moment that Python cannot name, or a text that is none.


def _least(value: object) -> str:
    if value == 0.0 and isinstance(value, float):
        value = -0.0  # Some readers have it below 0.0.
    return _literal(value[:TEXT] if isinstance(value, str) else value)


def _greatest(value: object) -> str:
    if value == 0.0 and isinstance(value, float):
        value = 0.0
    if isinstance(value, str):
        # Not below the text that is cut: whatever follows the first places, this follows it.
        cut = next((i for i in range(TEXT, len(value)) if value[i] != LAST), None)
        value = value if cut is None else value[:cut] + LAST
    return _literal(value)


def _literal(value: object) -> str:
    match value:
        case datetime():
            return f'"{value.astimezone(UTC).replace(tzinfo=None).isoformat("T", "microseconds")}Z"'
        case date():
            return f'"{value.isoformat()}"'
        case Decimal():
            return f"{value:f}"  # With all its digits: a float has 15.
        case bool() | int() | float() | str():
            # As UTF-8: arrow-json takes an escaped pair of surrogates for another character.
            return json.dumps(value, ensure_ascii=False)
    raise ValueError(f"no bound for {value!r}")


def _put(tree: Tree, path: tuple[str, ...], text: str) -> None:
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = text


def _json(value: Tree | str) -> str:
    if isinstance(value, str):
        return value
    return (
        "{"
        + ",".join(f"{json.dumps(k, ensure_ascii=False)}:{_json(v)}" for k, v in value.items())
        + "}"
    )


def in_time_order(adds: Sequence[Tree], event_time: str, lateness: timedelta) -> list[Tree] | None:
    """The files by their first event time; None where a reader that stops would lose rows.

    A reader's watermark is the newest time that it read less at least the lateness: behind any
    file it has to lie before every time that follows. None too where a file does not tell its
    times.
    """
    spans = []
    for each in adds:
        stats = json.loads(each["add"]["stats"])
        first, last = (stats.get(b, {}).get(event_time) for b in ("minValues", "maxValues"))
        if first is not None:
            spans.append((datetime.fromisoformat(first), datetime.fromisoformat(last), each))
        elif stats["nullCount"].get(event_time) != stats["numRecords"]:
            return None
    spans.sort(key=lambda span: span[:2])
    newest = accumulate((last for _, last, _ in spans), max)
    following = (first for first, _, _ in spans[1:])
    if any(first <= reached - lateness for reached, first in zip(newest, following, strict=False)):
        return None
    timeless = [each for each in adds if all(each is not span[2] for span in spans)]
    return [*timeless, *(each for _, _, each in spans)]
