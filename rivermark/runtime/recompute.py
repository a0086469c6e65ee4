"""Computing days of a stream's tables again, from its inputs as they are or as they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.errors import PartitionStillOpen, RivermarkError
from rivermark.lake.create import create_table
from rivermark.lake.days import days_of
from rivermark.lake.lake import Lake
from rivermark.lake.locks import days_lock
from rivermark.lake.log import CommitLog
from rivermark.lake.stats import row_count
from rivermark.lake.table import Table, days_between
from rivermark.lake.travel import resolve_version
from rivermark.runtime.closing import last_closed
from rivermark.runtime.refreshing import touched_day, write_days
from rivermark.runtime.watermarks import last_reached
from rivermark.settings import Settings
from rivermark.stream import Ingest, Stream, inputs_of, table_of
from rivermark.topology import Topology

AsOf = int | datetime | Mapping[str, int | datetime] | None


@dataclass
class RecomputeReport:
    """What a recompute read and wrote: versions and rows by table, before and after."""

    stream: str
    first: date
    last: date
    input_versions: dict[str, int]
    output_versions: dict[str, int] = field(default_factory=dict)
    rows_before: dict[str, int] = field(default_factory=dict)
    rows_after: dict[str, int] = field(default_factory=dict)
    rows_written: int = 0

    def follow_ups(self, topology: Topology) -> list[Stream]:
        """The streams downstream whose rows of these days are older than what was written now.

        Those that append have read the rows before and skip the replacing commit: each is to be
        recomputed in this order. Refreshed tables that read the stream directly follow by
        themselves.
        """
        changed = {self.stream}
        found = []
        for stream in topology.streams:
            above = [u.name for u in topology.upstreams(stream)]
            if isinstance(stream, Ingest) or not changed.intersection(above):
                continue
            if stream.kind == "append" or above[0] not in changed:
                found.append(stream)
            changed.add(stream.name)
        return found


def recompute(
    spark: SparkSession,
    settings: Settings,
    stream: Stream,
    first: date,
    last: date,
    *,
    as_of: AsOf = None,
    run_id: str,
) -> RecomputeReport:
    """Compute the days `first` to `last` again with the stream's own `build`, and replace them.

    Bare: nothing is compared first, and the register does not hear of it. What people and Dagster
    start is rivermark/reprocessing/reprocess.py, which pins, checks and builds by this module.

    `as_of` pins the inputs: a version, a moment (UTC), or either by table name; by default the
    newest version of each, which is pinned and reported too. Rows of other days are never touched.
    For an append stream only days that its watermark has passed are taken: PartitionStillOpen
    tells which are not. The live stream may go on meanwhile; streams that read the tables skip the
    replacing commit.
    """
    if last < first:
        raise RivermarkError(f"the range ends ({last}) before it begins ({first})")
    if stream.days is None:
        raise RivermarkError(f"'{stream.name}' is not kept by days: it cannot be recomputed by day")
    if stream.kind == "append":
        check_closed(settings.lake(), stream, last)
    lake = settings.lake()
    for table in stream.tables:
        create_table(lake, table)
    with days_lock(lake.path(stream.tables[0])):
        return _recompute(spark, lake, stream, first, last, as_of, run_id)


def _recompute(
    spark: SparkSession,
    lake: Lake,
    stream: Stream,
    first: date,
    last: date,
    as_of: AsOf,
    run_id: str,
) -> RecomputeReport:
    """Pin, build and replace, while nobody else computes days of the stream."""
    versions = pin_inputs(lake, stream, as_of)
    report = RecomputeReport(stream.name, first, last, versions)
    days = days_between(first, last)
    for table in stream.tables:
        report.rows_before[table.name] = row_count(lake, table)
    built = build_range(spark, lake, stream, first, last, versions)
    told: dict[str, object] = {
        "stream": stream.name,
        "recompute": [first.isoformat(), last.isoformat()],
        "run": run_id,
        "inputs": versions,
    }
    report.rows_written = write_days(lake, stream, built, days, told)
    for table in stream.tables:
        report.rows_after[table.name] = row_count(lake, table)
        newest = CommitLog(lake.path(table)).latest()
        report.output_versions[table.name] = newest.version if newest else 0
    return report


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
        reader = spark.read.format("delta").option("versionAsOf", versions[table.name])
        return reader.load(lake.path(table))

    daily = days_of(stream.tables[0])
    start, end = daily.bounds(first, last)
    inputs = []
    for position, source in enumerate(stream.reads):
        table = table_of(source)
        rows = read(table)
        if stream.kind == "refresh":
            if position == 0:
                whole_days = timedelta(days=-(-stream.margin // timedelta(days=1)))
                day = touched_day(stream)
                wanted = day.between(F.lit(first - whole_days), F.lit(last + whole_days))
                rows = rows.where(wanted)
        elif table.event_time is not None:
            # Windows are stamped with their start and hold later rows; a derived input with its
            # end.
            around = stream.margin + timedelta(days=1)
            moments = (start - around).astimezone(UTC), (end + around).astimezone(UTC)
            rows = rows.where(F.col(table.event_time).between(*(F.lit(m) for m in moments)))
        inputs.append(rows)
    lookups = [read(table_of(s)) for s in stream.static]
    return stream.build(*inputs, *lookups)


def recomputable(stream: Stream | Ingest) -> bool:
    """Whether days of the stream can be computed again from its input tables."""
    return isinstance(stream, Stream) and stream.days is not None
