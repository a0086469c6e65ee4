"""The rows of a fork beside those of its stream, by day."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

from pyspark.sql import SparkSession

from rivermark.backfill.comparison import compare, compare_on_spark
from rivermark.backfill.difference import Difference
from rivermark.lake.day_predicates import in_days
from rivermark.lake.delta import dataset_of, delta_table, read_delta
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Stream
from rivermark.model.table import days_between
from rivermark.model.time import DAY, shifted
from rivermark.model.topology import Topology
from rivermark.runtime.checkpoint.closed_days import last_closed
from rivermark.runtime.checkpoint.watermarks import last_reached
from rivermark.runtime.savepoint.fork import fork_named, forked
from rivermark.runtime.savepoint.store import savepoint
from rivermark.runtime.spark.input_size import DRIVER_BYTES
from rivermark.settings import Settings


def compare_fork(
    settings: Settings,
    topology: Topology,
    name: str,
    first: date | None = None,
    last: date | None = None,
    spark: Callable[[], SparkSession] = SparkSession.builder.getOrCreate,
) -> dict[str, Difference]:
    """Compare each table with days, by name: `before` is the stream's, `after` the fork's.

    Without days, those that both have finished since the savepoint. Starts no Spark, but for days
    of many rows. Raises RivermarkError where there are none.
    """
    lake = settings.lake()
    made, stream = fork_named(lake, topology, name)
    twin = forked(stream, name)
    if first is None:
        first, closed = _days(settings, stream, twin, made.savepoint)
        last = last or closed
    differences = {}
    for own, other in zip(stream.outputs, twin.outputs, strict=True):
        if own.table.days is None:
            continue
        paths = [lake.path(each.table) for each in (own, other)]
        old, new = (dataset_of(delta_table(path)) for path in paths)
        days = in_days(own.table, days_between(first, last or first))
        if max(old.size(days), new.size(days)) <= DRIVER_BYTES:
            differences[own.table.name] = compare(old, new, own.table, first, last or first)
        else:
            was, now = (read_delta(spark(), path) for path in paths)
            differences[own.table.name] = compare_on_spark(
                was, now, own.table, first, last or first
            )
    if not differences:
        raise RivermarkError(f"no table of '{stream.name}' has days: compare them by rivermark sql")
    return differences


def _days(settings: Settings, stream: Stream, twin: Stream, kept: str) -> tuple[date, date]:
    """The days that both have finished since the savepoint."""
    lake = settings.lake()
    reached = [last_reached(lake, each) for each in (stream, twin)]
    began = savepoint(lake, stream.name, kept).watermark
    ends = [last_closed(each, at) for each, at in zip((stream, twin), reached, strict=True) if at]
    if stream.days is not None and began is not None and len(ends) == 2:
        first = shifted(last_closed(stream, began), DAY)
        if first <= min(ends):
            return first, min(ends)
    raise RivermarkError(
        f"'{stream.name}' and its fork have not both finished a day since the savepoint: run both "
        "on, or give days (--from, --to)"
    )
