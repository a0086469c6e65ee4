"""Days of a derived stream computed again, and replaced only where the result is another."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import MapType

from rivermark.folding.reach import Changed
from rivermark.lake.days import condition, day_column, days_of, is_date, ranges
from rivermark.lake.lake import Lake
from rivermark.lake.locks import days_lock
from rivermark.lake.replace import replace_days
from rivermark.lake.table import Table
from rivermark.runtime.recompute import build_range, pin_inputs
from rivermark.stream import Stream


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
    metadata: dict[str, Any],
) -> list[MendedTable]:
    """Compute the days again from the newest input, and replace those whose rows differ.

    One computation for each stretch of days without a gap. The stream must have closed the days.
    """
    found = {t.name: MendedTable(t.name, tuple(sorted(days))) for t in stream.tables}
    with days_lock(lake.path(stream.tables[0])):
        versions = pin_inputs(lake, stream, None)
        for first, last in ranges(days):
            # Held, because it is compared first and then written.
            built = build_range(spark, lake, stream, first, last, versions).persist()
            told = {
                "stream": stream.name,
                "recompute": [first.isoformat(), last.isoformat()],
                "inputs": versions,
                **metadata,
            }
            try:
                inside = [day for day in days if first <= day <= last]
                for output in stream.outputs:
                    rows = built if output.where is None else built.where(output.where())
                    mine = rows.select(
                        *[F.col(f.name).cast(f.dataType) for f in output.table.schema.fields]
                    )
                    mended = found[output.table.name]
                    _replace(spark, lake, stream, output.table, mine, inside, told, mended)
            finally:
                built.unpersist()
    return list(found.values())


def _replace(
    spark: SparkSession,
    lake: Lake,
    stream: Stream,
    table: Table,
    rows: DataFrame,
    days: Collection[date],
    told: dict[str, Any],
    mended: MendedTable,
) -> None:
    """Compare the rows with those that are there, and replace the days that differ."""
    there = spark.read.format("delta").load(lake.path(table)).select(*rows.columns)
    changed = _compare(table, rows, there, days, mended)
    if not changed.days:
        return
    mine = rows.where(condition(table, changed.days))
    written = mine.toArrow() if stream.volume == "results" else mine
    replace_days(lake, table, written, changed.days, told)
    mended.changed |= changed


def _compare(
    table: Table, after: DataFrame, before: DataFrame, days: Collection[date], mended: MendedTable
) -> Changed:
    """The days and hours in which the rows differ, by number and by a hash of all columns."""
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
