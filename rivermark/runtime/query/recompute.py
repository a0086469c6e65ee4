"""What recomputing days of a stream needs: closed days, pinned inputs, and the rows built.

What people and Dagster start is rivermark/backfill/reprocess.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.lake.day_predicates import days_of
from rivermark.lake.delta import read_delta
from rivermark.lake.lake import Lake
from rivermark.lake.time_travel import resolve_version
from rivermark.model.errors import PartitionStillOpen
from rivermark.model.stream import Ingest, Stream, inputs_of, table_of
from rivermark.model.table import Table, days_between
from rivermark.runtime.checkpoint.closed_days import last_closed
from rivermark.runtime.checkpoint.watermarks import last_reached
from rivermark.runtime.query.build import apply_build
from rivermark.runtime.query.refresh import touches_days
from rivermark.runtime.query.static_tables import StaticTables

AsOf = int | datetime | Mapping[str, int | datetime] | None


def check_closed(lake: Lake, stream: Stream, last: date) -> None:
    """Refuse a day that the live stream may still write: it would write its rows a second time."""
    watermark = last_reached(lake, stream)
    if watermark is None:
        raise PartitionStillOpen(
            f"stream '{stream.name}' has not finished any day yet, so it would write "
            f"{last.isoformat()} a second time when it does. Run it first, then recompute."
        )
    closed = last_closed(stream, watermark)
    if last > closed:
        raise PartitionStillOpen(
            f"stream '{stream.name}' has finished its days through {closed.isoformat()} "
            f"(watermark {watermark.isoformat()}); {last.isoformat()} is still open. Recompute "
            f"through {closed.isoformat()}, or wait until the watermark has passed the day."
        )


def pin_inputs(lake: Lake, stream: Stream, as_of: AsOf) -> dict[str, int]:
    """The version of each table that will be read."""
    pinned = {}
    for table in inputs_of(stream):
        wanted = as_of.get(table.name) if isinstance(as_of, Mapping) else as_of
        pinned[table.name] = resolve_version(lake, table, wanted)
    return pinned


def build_range(
    spark: SparkSession,
    lake: Lake,
    stream: Stream,
    first: date,
    last: date,
    versions: Mapping[str, int],
) -> DataFrame:
    """The stream's rows from the pinned inputs, with the margin that its windows and joins need."""

    def read(table: Table) -> DataFrame:
        return read_delta(spark, lake.path(table), versions[table.name])

    daily = days_of(stream.tables[0])
    start, end = daily.bounds(first, last)
    inputs = []
    for position, source in enumerate(stream.reads):
        table = table_of(source)
        rows = read(table)
        if stream.kind == "refresh":
            if position == 0:
                rows = rows.where(touches_days(stream, days_between(first, last)))
        elif table.event_time is not None:
            # Windows are stamped with their start and hold later rows; a derived input with its
            # end.
            around = stream.margin + timedelta(days=1)
            moments = (start - around).astimezone(UTC), (end + around).astimezone(UTC)
            rows = rows.where(F.col(table.event_time).between(*(F.lit(m) for m in moments)))
        inputs.append(rows)
    static = StaticTables(lake, stream, versions)
    static.check()
    return apply_build(stream.name, stream.build, *inputs, *static.read(spark))


def recomputable(stream: Stream | Ingest) -> bool:
    """Whether days of the stream can be recomputed from its input tables."""
    return isinstance(stream, Stream) and stream.days is not None
