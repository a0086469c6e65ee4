"""Facts that follow from a table's own statistics, without reading rows. Starts no JVM."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable

from rivermark.lake.delta import dataset_of, delta_table, read_batches
from rivermark.lake.lake import Lake
from rivermark.model.table import Table
from rivermark.model.time import FIRST, LAST, MILLISECOND

Moment = date | datetime


def smallest(lake: Lake, table: Table, column: str) -> Moment | None:
    """The smallest moment or date of a column over all files; None for an empty table."""
    return bound(lake, table, column, "min", min)


def largest(lake: Lake, table: Table, column: str) -> Moment | None:
    """The largest moment or date of a column over all files; None for an empty table."""
    return bound(lake, table, column, "max", max)


def bound(
    lake: Lake,
    table: Table,
    column: str,
    side: Literal["min", "max"],
    choose: Callable[[list[Moment]], Moment],
) -> Moment | None:
    """One bound of a column, from the statistics that each file was committed with."""
    if not lake.exists(table):
        return None
    return _bound(delta_table(lake.path(table)), column, side, choose)


def largest_in(delta: DeltaTable, column: str) -> Moment | None:
    """The largest moment or date of a column of an opened version; None without statistics."""
    return _bound(delta, column, "max", max)


def _bound(
    delta: DeltaTable,
    column: str,
    side: Literal["min", "max"],
    choose: Callable[[list[Moment]], Moment],
) -> Moment | None:
    if column not in [field.name for field in delta.schema().fields]:
        return None
    # Not by `pa.table`, nor by a dataset that has no files: both import pandas, 0.4 s.
    files = pa.RecordBatchReader.from_stream(delta.get_add_actions(flatten=True)).read_all()
    if not files.num_rows:
        return None
    known: list[Moment] = []
    if states_bounds(files, column):
        name = f"{side}.{column}"
        end = pc.min_max(files[name])[side] if name in files.column_names else None
        known = [] if end is None else within_calendar(end)
    else:
        # Bounds lack where a value of any column has none, such as NaN (append/data_file.py).
        for batch in read_batches(dataset_of(delta), columns=[column]):
            known += within_calendar(pc.min_max(batch[column])[side])
    if not known:
        return None
    chosen = choose(known)
    return chosen.astimezone(UTC) if isinstance(chosen, datetime) else chosen


def newest_added(actions: Iterable[Mapping[str, Any]], column: str) -> datetime | None:
    """The newest time (UTC) of a column among the rows that a commit adds; None where it has none.

    It is never later than the true one: a bound without microseconds may be rounded up, and counts
    a millisecond less. Raises ValueError where a file does not tell its bounds.
    """
    newest = None
    for action in actions:
        if "add" not in action or not action["add"]["dataChange"]:
            continue
        stats = json.loads(action["add"].get("stats") or "{}")
        if stats.get("nullCount", {}).get(column, -1) == stats.get("numRecords"):
            continue
        greatest = stats.get("maxValues", {}).get(column)
        if not isinstance(greatest, str):
            raise ValueError(f"{action['add']['path']} does not tell its newest {column}")
        at = datetime.fromisoformat(greatest)
        at = at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
        at -= timedelta(0) if re.search(r"\.\d{6}", greatest) else MILLISECOND
        newest = at if newest is None else max(newest, at)
    return newest


def within_calendar(value: pa.Scalar) -> list[Moment]:
    """A moment or date as Python has it: one beyond year 9999, or before year 1, is that end."""
    if not value.is_valid:
        return []
    try:
        return [value.as_py()]
    except (OverflowError, ValueError):
        if pa.types.is_date(value.type):
            return [date.max if value.cast(pa.int32()).as_py() > 0 else date.min]
        return [LAST if value.cast(pa.int64()).as_py() > 0 else FIRST]


def states_bounds(files: pa.Table, column: str) -> bool:
    """Returns True if each file that has values of the column tells their bounds."""
    if f"min.{column}" not in files.column_names:
        bounded = pa.array([False] * files.num_rows)
    else:
        bounded = pc.and_(pc.is_valid(files[f"min.{column}"]), pc.is_valid(files[f"max.{column}"]))
    if f"null_count.{column}" not in files.column_names:
        return bool(pc.all(bounded).as_py())
    empty = pc.equal(files[f"null_count.{column}"], files["num_records"])
    return bool(pc.all(pc.or_kleene(bounded, pc.fill_null(empty, False))).as_py())


def recorded_rows(table: DeltaTable) -> int:
    """Rows of an opened version, by its statistics."""
    counts = pa.chunked_array(table.get_add_actions()["num_records"])
    return int(pc.sum(counts).as_py() or 0)


def file_sizes(table: DeltaTable) -> list[int]:
    """Bytes of each file of an opened version."""
    return [*table.get_add_actions()["size_bytes"].to_pylist()]
