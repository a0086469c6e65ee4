"""A recompute of days: closed days, pinned inputs, and the rows built.

What people and Dagster start is rivermark/backfill/reprocess.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.lake.day_predicates import days_of
from rivermark.lake.delta import read_delta
from rivermark.lake.lake import Lake
from rivermark.lake.time_travel import resolve_version
from rivermark.model.errors import PartitionStillOpen
from rivermark.model.stream import Ingest, Stream, inputs_of, table_of
from rivermark.model.table import days_between
from rivermark.model.time import shifted
from rivermark.operators.reach import BuildReach
from rivermark.runtime.checkpoint.closed_days import last_closed
from rivermark.runtime.checkpoint.watermarks import last_reached
from rivermark.runtime.query.finality import (
    around_days,
    build_days_of,
    finished_after,
    open_until,
    read_instead,
)
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


@dataclass(frozen=True)
class Built:
    """A stream's rows of a range of days, not computed yet, and what else they are made of.

    `reach` tells, once they are computed, whether enough was read `around` the days.
    """

    rows: DataFrame
    around: timedelta
    reach: BuildReach


def build_range(
    spark: SparkSession,
    lake: Lake,
    stream: Stream,
    first: date,
    last: date,
    versions: Mapping[str, int],
    around: timedelta | None = None,
) -> Built:
    """The stream's rows from the pinned inputs, read so far around the days.

    By default as its margin says.

    Raises:
        DeclarationError: An operator reaches farther than the margin of the stream.
        PartitionStillOpen: Windows of the days have not ended yet.
    """
    around = around_days(stream) if around is None else around
    start, end = days_of(stream.tables[0]).bounds(first, last)
    inputs = []
    for position, source in enumerate(stream.reads):
        table = table_of(source)
        rows = read_delta(spark, lake.path(table), versions[table.name])
        if stream.kind == "refresh":
            if position == 0:
                rows = rows.where(touches_days(stream, days_between(first, last), around))
        elif table.event_time is not None:
            moments = shifted(start, -around), shifted(end, around)
            rows = rows.where(F.col(table.event_time).between(*(F.lit(m) for m in moments)))
        inputs.append(rows)
    static = StaticTables(lake, stream, versions)
    static.check()
    reach = BuildReach((start, end), margin=stream.margin)
    built = build_days_of(stream, reach, *inputs, *static.read(spark))
    if stream.kind == "append":
        _check_ended(lake, stream, last, end + finished_after(stream, reach))
    return Built(built, around, reach)


def check_final(lake: Lake, stream: Stream, last: date, built: Built) -> timedelta | None:
    """The span around the days to read instead, after the rows were computed; None if they stand.

    Raises:
        PartitionStillOpen: A session of the days has not ended yet.
        RivermarkError: Sessions last longer than is read around any day.
    """
    around = read_instead(stream, built.reach, built.around)
    ends = open_until(built.reach, stream)
    if around is None and ends is not None and stream.kind == "append":
        _check_ended(lake, stream, last, ends)
    return around


def _check_ended(lake: Lake, stream: Stream, last: date, ends: datetime) -> None:
    """Refuse days of which the stream has results still to write."""
    watermark = last_reached(lake, stream)
    if watermark is not None and watermark < ends:
        raise PartitionStillOpen(
            f"stream '{stream.name}': a window or session of {last.isoformat()} or before ends at "
            f"{ends.isoformat()}, and the stream (watermark {watermark.isoformat()}) has still to "
            "write it: it would be there twice. Wait until the watermark has passed it"
        )


def recomputable(stream: Stream | Ingest) -> bool:
    """Returns True if days of the stream can be recomputed from its input tables."""
    return isinstance(stream, Stream) and stream.days is not None
