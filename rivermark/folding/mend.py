"""Days of a derived stream computed again, and replaced only where the result is another."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Final

from deltalake import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import MapType

from rivermark.folding.reach import Changed
from rivermark.lake.days import condition, day_column, days_of, is_date, ranges
from rivermark.lake.lake import Lake
from rivermark.lake.locks import days_lock
from rivermark.lake.replace import replace_days
from rivermark.lake.table import Table
from rivermark.reprocessing.comparing import compare
from rivermark.reprocessing.difference import Difference
from rivermark.reprocessing.fingerprint import code_of
from rivermark.reprocessing.record import new_id, remember, whoever
from rivermark.reprocessing.report import Reprocessing, TableOutcome
from rivermark.reprocessing.reprocess import told, version_of
from rivermark.runtime.recompute import build_range, pin_inputs
from rivermark.stream import Output, Stream

COMPARED_ROWS: Final = 1_000_000
"""Up to so many replaced rows the register tells how many were added, removed and changed."""


@dataclass
class MendedTable:
    """What became of a table's days: those that were computed, and those that differed."""

    table: str
    days: tuple[date, ...]
    changed: Changed = field(default_factory=Changed)
    rows_before: dict[date, int] = field(default_factory=dict)
    rows_after: dict[date, int] = field(default_factory=dict)


def mend(
    spark: SparkSession,
    lake: Lake,
    stream: Stream,
    days: Collection[date],
    *,
    because: str,
    run_id: str,
) -> list[MendedTable]:
    """Compute the days again from the newest input, and replace those whose rows differ.

    One computation for each stretch of days without a gap; what was replaced is a reprocessing in
    the register, and can be undone as any other. The stream must have closed the days.
    """
    found = {t.name: MendedTable(t.name, tuple(sorted(days))) for t in stream.tables}
    with days_lock(lake.path(stream.tables[0])):
        versions = pin_inputs(lake, stream, None)
        for first, last in ranges(days):
            began = time.monotonic()
            # Held, because it is compared first and then written.
            built = build_range(spark, lake, stream, first, last, versions).persist()
            try:
                inside = [day for day in days if first <= day <= last]
                differing = {}
                for output in stream.outputs:
                    rows = _declared(built, output)
                    changed = _compare(
                        spark, lake, output.table, rows, inside, found[output.table.name]
                    )
                    if changed.days:
                        found[output.table.name].changed |= changed
                        differing[output.table.name] = changed.days
                if differing:
                    done = _begun(stream, differing, versions, because, run_id)
                    for output in stream.outputs:
                        if output.table.name in differing:
                            mine = differing[output.table.name]
                            _replace(
                                lake, stream, done, output.table, _declared(built, output), mine
                            )
                    done.seconds = round(time.monotonic() - began, 3)
                    remember(lake, done.records())
            finally:
                built.unpersist()
    return list(found.values())


def _declared(built: DataFrame, output: Output) -> DataFrame:
    """The rows of an output with the types that its table declares."""
    rows = built if output.where is None else built.where(output.where())
    return rows.select(*[F.col(f.name).cast(f.dataType) for f in output.table.schema.fields])


def _begun(
    stream: Stream,
    differing: Mapping[str, Collection[date]],
    versions: Mapping[str, int],
    because: str,
    run_id: str,
) -> Reprocessing:
    """The reprocessing of the days that differ, as the register keeps it."""
    days = [day for of_table in differing.values() for day in of_table]
    now = datetime.now(UTC)
    return Reprocessing(
        id=new_id(now),
        kind="replaced",
        stream=stream.name,
        first=min(days),
        last=max(days),
        at=now,
        run_id=run_id,
        by=whoever(),
        inputs=versions,
        code=code_of(stream),
        because=because,
    )


def _replace(
    lake: Lake,
    stream: Stream,
    done: Reprocessing,
    table: Table,
    rows: DataFrame,
    days: Collection[date],
) -> None:
    """Replace the days of one table, and note how they differ."""
    path = lake.path(table)
    outcome = TableOutcome(table.name, DeltaTable(path).version(), Difference())
    mine = rows.where(condition(table, days))
    written = mine.toArrow() if stream.volume == "results" else mine
    count = replace_days(
        lake, table, written, days, told(done, outcome), on_conflict=outcome.met_conflict
    )
    outcome.version_after = version_of(lake, table, done.id)
    if count <= COMPARED_ROWS and outcome.version_after is not None:
        before = DeltaTable(path, version=outcome.version_before).to_pyarrow_dataset()
        after = DeltaTable(path, version=outcome.version_after).to_pyarrow_dataset()
        outcome.difference = compare(before, after, table, done.first, done.last)
    done.tables[table.name] = outcome


def _compare(
    spark: SparkSession,
    lake: Lake,
    table: Table,
    after: DataFrame,
    days: Collection[date],
    mended: MendedTable,
) -> Changed:
    """The days and hours in which the rows differ from those that are there.

    By number, and by a hash of all columns.
    """
    before = spark.read.format("delta").load(lake.path(table))
    inside = condition(table, days)
    # As a number: a moment would be told in the zone of this process.
    moment = F.unix_seconds(F.date_trunc("hour", table.event_time)) if table.event_time else None
    hour = F.lit(None).cast("bigint") if moment is None else moment
    sides = [
        rows.where(inside).select(
            _day(table).alias("day"),
            hour.alias("hour"),
            F.lit(side).alias("side"),
            _hash(table).alias("hash"),
        )
        for rows, side in ((before, -1), (after, 1))
    ]
    signed = F.col("hash").cast("decimal(20,0)") * F.col("side")
    groups = (
        sides[0]
        .unionAll(sides[1])
        .groupBy("day", "hour")
        .agg(
            F.count_if(F.col("side") < 0).alias("before"),
            F.count_if(F.col("side") > 0).alias("after"),
            F.sum(signed).alias("difference"),
        )
        .collect()
    )
    changed_days, changed_hours = set(), set()
    for group in groups:
        day = group["day"]
        mended.rows_before[day] = mended.rows_before.get(day, 0) + group["before"]
        mended.rows_after[day] = mended.rows_after.get(day, 0) + group["after"]
        if group["before"] != group["after"] or group["difference"] != 0:
            changed_days.add(day)
            if group["hour"] is not None:
                changed_hours.add(datetime.fromtimestamp(group["hour"], UTC))
    return Changed(frozenset(changed_days), frozenset(changed_hours))


def _day(table: Table) -> Column:
    daily = days_of(table)
    return F.col(daily.column) if is_date(table) else day_column(daily, daily.column)


def _hash(table: Table) -> Column:
    columns = [
        F.to_json(F.struct(f.name)) if isinstance(f.dataType, MapType) else F.col(f.name)
        for f in table.schema.fields
    ]
    return F.xxhash64(*columns)
