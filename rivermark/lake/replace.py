"""Replacing whole days, or a span of hours, of a table in one commit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import date, datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError
from pyspark.sql import DataFrame

from rivermark.lake.append.version_checksum import write_checksum
from rivermark.lake.commit_metadata import commit_properties, user_metadata
from rivermark.lake.day_predicates import (
    moments_between,
    moments_predicate,
    predicate,
    spark_predicate,
)
from rivermark.lake.delta import dataset_of, delta_table, read_delta, read_rows
from rivermark.lake.foreign_constraints import constraints_named
from rivermark.lake.lake import Lake
from rivermark.lake.locks import commit_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.sql import query
from rivermark.lake.stream_safe_replace import SECOND, newest_in, rows_to_rewrite, whole_second
from rivermark.lake.unbounded import writer_options
from rivermark.model.errors import RivermarkError
from rivermark.model.table import Table

TRIES: Final = 8
"""How often a commit is tried where another writer was faster; each try begins from its rows."""

OnConflict = Callable[[], None]


def replace_days(
    lake: Lake,
    table: Table,
    rows: DataFrame | pa.Table,
    days: Collection[date],
    metadata: dict[str, Any],
    *,
    on_conflict: OnConflict | None = None,
) -> int:
    """Put `rows` in place of all rows of `days` and count them; other days are never changed.

    The rows must lie in those days (Delta refuses others). Doing it again changes nothing. Readers
    by stream skip the commit, also where the days were empty before
    (rivermark/lake/stream_safe_replace.py). An
    Arrow table is committed from here, without a Spark job.

    Our own writers wait for each other. Where one that knows no lock committed to the same files
    meanwhile, the replacing is done again upon its commit; `on_conflict` hears of it each time.
    """
    if not days:
        raise RivermarkError(
            f"table '{table.name}': no days to replace were given; nothing was done"
        )
    for tried in range(1, TRIES + 1):
        try:
            path = lake.path(table)
            with commit_lock(path), constraints_named(path, table.name, rows):
                return _replace(lake, table, rows, days, metadata)
        except Exception as error:
            if not is_conflict(error):
                raise
            if tried == TRIES:
                raise RivermarkError(
                    f"table '{table.name}': other writers committed to the same days {TRIES} times "
                    "while they were replaced; nothing was replaced. Stop them, or try again later"
                ) from error
            if on_conflict is not None:
                on_conflict()
    raise AssertionError("the last try ends it")


APPEND_ONLY: Final = "delta.appendOnly"


def is_conflict(error: BaseException) -> bool:
    """True if a commit failed because another writer's came between, by delta-rs or Delta's JVM."""
    return isinstance(error, CommitFailedError) or "DELTA_CONCURRENT" in str(error)


def _replace(
    lake: Lake,
    table: Table,
    rows: DataFrame | pa.Table,
    days: Collection[date],
    metadata: dict[str, Any],
) -> int:
    path = lake.path(table)
    delta = delta_table(path)
    if delta.metadata().configuration.get(APPEND_ONLY, "false").lower() == "true":
        raise RivermarkError(
            f"table '{table.name}' only accepts appends ({APPEND_ONLY}=true), so its days "
            f"cannot be replaced. Set {APPEND_ONLY} to false, then try again"
        )
    rewritten = rows_to_rewrite(delta, table, days)
    if isinstance(rows, pa.Table):
        where, written = predicate(table, days), rows
        if rewritten is not None and rows.num_rows:
            where = f"{where} OR {rewritten.predicate}"
            same = rewritten.rows.select(rows.column_names).cast(rows.schema)
            written = pa.concat_tables([rows, same])
        _overwrite(delta, path, written, where, metadata)
        return int(rows.num_rows)
    where = spark_predicate(table, days)
    inside = rows.where(where)
    if rewritten is not None:
        same = rows.sparkSession.createDataFrame(rewritten.rows)
        inside = inside.unionByName(same.to(rows.schema))
        where = f"({where}) OR {rewritten.predicate}"
    _overwrite_by_spark(path, inside, where, metadata)
    newest = CommitLog(path).latest()
    count = newest.rows or 0 if newest else 0
    return count - (rewritten.rows.num_rows if rewritten is not None else 0)


def replace_span(
    lake: Lake,
    table: Table,
    delta: DeltaTable,
    rows: DataFrame | pa.Table,
    column: str,
    start: datetime,
    end: datetime,
    metadata: dict[str, Any],
) -> None:
    """Put `rows` in place of all rows whose `column` lies in [start, end), in one commit.

    Some row must lie there now, or streams would read the commit as new input. `delta` is the table
    as it was opened under its commit lock, which the caller holds until this returns.
    """
    path, where = lake.path(table), moments_predicate(column, start, end)
    if isinstance(rows, pa.Table):
        _overwrite(delta, path, rows, where, metadata)
    else:
        _overwrite_by_spark(path, rows, where, metadata)


def replace_rows(
    lake: Lake, table: Table, rows: DataFrame | pa.Table, where: str, metadata: dict[str, Any]
) -> None:
    """Put `rows` in place of all rows that fulfil a condition of SQL, in one commit.

    The condition is one of delta-rs, and of Spark where the rows are a frame. Where no row fulfils
    it, the newest second of the table's event time is written again as it was, so that streams skip
    this commit too (rivermark/lake/stream_safe_replace.py).
    """
    path = lake.path(table)
    with commit_lock(path):
        delta = delta_table(path)
        stored = dataset_of(delta)
        framed = not isinstance(rows, pa.Table)
        if framed:
            present = bool(read_delta(rows.sparkSession, path).where(where).take(1))
        else:
            present = bool(query(f"SELECT 1 FROM rows WHERE {where} LIMIT 1", {"rows": stored}))  # noqa: S608
        if not framed and not rows.num_rows:
            if present:
                delta.delete(
                    where,
                    commit_properties=commit_properties(metadata),
                    **writer_options(delta),
                )
                write_checksum(path, delta.version())
            return
        time = table.event_time
        newest = newest_in(delta, time) if time and not present else None
        if time and isinstance(newest, datetime):
            start = whole_second(newest)
            same = read_rows(stored, filter=moments_between(time, start, start + SECOND))
            where = f"({where}) OR ({moments_predicate(time, start, start + SECOND)})"
            if framed:
                again = rows.sparkSession.createDataFrame(same)
                rows = rows.unionByName(again.select(rows.columns).to(rows.schema))
            else:
                same = same.select(rows.column_names).cast(rows.schema)
                rows = pa.concat_tables([rows, same])
        if framed:
            _overwrite_by_spark(path, rows, where, metadata)
        else:
            _overwrite(delta, path, rows, where, metadata)


def _overwrite_by_spark(path: str, rows: DataFrame, where: str, metadata: dict[str, Any]) -> None:
    # As many files as there are tasks: streams skip the commit, so its order is none of theirs.
    writer = rows.write.format("delta").mode("overwrite").option("replaceWhere", where)
    writer.option("userMetadata", user_metadata(metadata)).save(path)


def _overwrite(
    delta: DeltaTable, path: str, rows: pa.Table, where: str, metadata: dict[str, Any]
) -> None:
    write_deltalake(
        delta,
        rows,
        mode="overwrite",
        predicate=where,
        commit_properties=commit_properties(metadata),
        **writer_options(delta, rows),
    )
    write_checksum(path, delta.version())
