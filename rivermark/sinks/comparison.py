"""A target outside the lake compared with the output's table: its batch, and its rows at it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.duckdb_days import duckdb_day
from rivermark.lake.lake import Lake
from rivermark.lake.log import CommitLog
from rivermark.lake.quoting import quoted
from rivermark.lake.sql import query
from rivermark.lake.written import is_whole, noted
from rivermark.model.errors import CheckpointIncompatible
from rivermark.model.sink import Holding, Origin, Sink, SinkContext
from rivermark.model.stream import Output
from rivermark.model.table import Table
from rivermark.sinks.undelivered import undelivered_of, waiting_in

if TYPE_CHECKING:
    # It imports pandas, which takes a second.
    from rivermark.lake.table_rows import TableRows

SHOWN: Final = 3


def name_of_target(table: Table, sink: Sink) -> str:
    """The name of a target's notes beside the checkpoint of its stream."""
    return f"{table.name}-{sha256(sink.target.encode()).hexdigest()[:12]}"


def compared(lake: Lake, output: Output, sink: Sink, origin: Origin) -> tuple[bool, str]:
    """True if a target holds what its table says, and a sentence; for sinks that tell a holding.

    Rows that wait in the table of undelivered ones may lack. A target that keeps the latest row
    of each key may hold more: those that a recompute gives no longer stay.
    """
    context = SinkContext(
        root=lake.root, retention=lake.retention, table=output.table, origin=origin
    )
    name = name_of_target(output.table, sink)
    batch = noted(lake, name, origin)
    holding = sink.holding(context)
    if holding is None or batch is None:
        return True, f"{sink.target}: no batch was written yet"
    if holding.batch < batch:
        held = "no batch" if holding.batch < 0 else f"batch {holding.batch}"
        return False, (
            f"{sink.target} says that it holds {held}, and batch {batch} was written there: it was "
            "restored from a backup, made again, or lost its record of batches"
        )
    if holding.rows is None:
        return True, f"{sink.target}: holds batch {holding.batch}"
    if not is_whole(lake, name, origin) or _cannot_be_counted(output, sink):
        return True, f"{sink.target}: {holding.rows:,} rows at batch {holding.batch}, not compared"
    return _rows_compared(lake, output, sink, origin, holding)


def check_not_emptied(lake: Lake, output: Output, sink: Sink, origin: Origin) -> None:
    """Refuse a target without rows whose table says that it has some.

    Raises CheckpointIncompatible.
    """
    is_right, said = compared(lake, output, sink, origin)
    if not is_right:
        raise CheckpointIncompatible(
            f"stream '{origin.stream}': {said}. It was truncated, or made again. Put its rows "
            "back, or start over on purpose, which writes every row again: "
            f"rivermark reset {origin.stream}"
        )


def _cannot_be_counted(output: Output, sink: Sink) -> bool:
    """True if the table keeps the latest rows, and the target every one."""
    return output.updates_rows and not sink.updates_rows


def _rows_compared(
    lake: Lake, output: Output, sink: Sink, origin: Origin, holding: Holding
) -> tuple[bool, str]:
    path = lake.path(output.table)
    at = _version_at(CommitLog(path), origin, holding.batch)
    rows = {"rows": dataset_of(delta_table(path, version=at))}
    sql = Holding(-1).expected if output.updates_rows else holding.expected
    expected = int(query(sql, rows)[0]["n"])
    waiting = sum(
        row["target"] in (sink.target, None)
        for row in waiting_in(lake, undelivered_of(output.table))
    )
    held = holding.rows or 0
    said = f"{sink.target}: {held:,} rows at batch {holding.batch}, {expected:,} by the table"
    if waiting:
        said += f", {waiting:,} not delivered"
    if held < expected - waiting or (held > expected and not sink.updates_rows):
        return False, f"{said}{_days_apart(output, rows, holding)}"
    apart = "" if waiting else _days_apart(output, rows, holding)
    return not apart, f"{said}{apart}"


def _days_apart(output: Output, rows: Mapping[str, TableRows], holding: Holding) -> str:
    """The dates of which the target has another number of rows, in words; empty without any."""
    if holding.days is None or output.table.days is None:
        return ""
    column = output.table.days.column
    is_date = str(output.table.schema[column].dataType.typeName()) == "date"
    day = quoted(column) if is_date else duckdb_day(quoted(column), "UTC")
    counted = query(f"SELECT {day} AS day, count(*) AS n FROM rows GROUP BY 1", rows)  # noqa: S608
    expected: dict[date, int] = {row["day"]: row["n"] for row in counted}
    apart = [
        f"{day}: {holding.days.get(day, 0):,} rows, {expected.get(day, 0):,} by the table"
        for day in sorted({*expected, *holding.days}, key=str)
        if expected.get(day, 0) != holding.days.get(day, 0)
    ]
    more = f" and {len(apart) - SHOWN:,} more days" if len(apart) > SHOWN else ""
    return f" ({'; '.join(apart[:SHOWN])}{more})" if apart else ""


def _version_at(log: CommitLog, origin: Origin, batch: int) -> int | None:
    """The version of the table before the batch behind that one; None for the newest."""
    later = None
    for commit in log.backwards():
        metadata = commit.metadata
        ours = (metadata.get("stream"), metadata.get("generation"))
        if ours == (origin.stream, origin.generation) and "batch" in metadata:
            if int(metadata["batch"]) <= batch:
                break
            later = commit.version
    return None if later is None else later - 1
