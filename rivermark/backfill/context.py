"""The context that every backfill works with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rivermark.lake.day_predicates import moments_between
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.lake.lake import Lake
from rivermark.model.source import weight_of
from rivermark.model.stream import Stream, table_of
from rivermark.model.time import shifted
from rivermark.model.topology import Topology
from rivermark.settings import Settings

if TYPE_CHECKING:
    from datetime import date

    from pyspark.sql import SparkSession

    from rivermark.backfill.result import Reprocessing


@dataclass(frozen=True, kw_only=True)
class BackfillContext:
    """A deployment, Spark on demand, and who is told what happens.

    `spark` returns the session; it is called only where days have to be computed. `on_step` takes
    progress in words, `expect` before the session is first asked for the bytes that have to be
    read, by which it is chosen, `on_done` each reprocessing as soon as its rows are in place.
    """

    settings: Settings
    topology: Topology
    spark: Callable[[], SparkSession]
    run_id: str
    on_step: Callable[[str], None] = lambda _: None
    on_done: Callable[[Reprocessing], None] = lambda _: None
    expect: Callable[[int], None] = lambda _: None

    def engine_for(self, stream: Stream, first: date, last: date) -> SparkSession:
        """The session, for days (both included) of a stream; one that fits them if it is new."""
        self.expect(bytes_of_days(self.lake, stream, first, last))
        return self.spark()

    @property
    def lake(self) -> Lake:
        """The lake of the deployment."""
        return self.settings.lake()


def bytes_of_days(lake: Lake, stream: Stream, first: date, last: date) -> int:
    """Bytes as text of the files that may hold rows of what the stream reads for those days."""
    if stream.days is None:
        return 0
    total = 0
    start, end = stream.days.bounds(first, last)
    for table in map(table_of, stream.reads):
        if table.event_time is None or not lake.exists(table):
            continue
        rows = dataset_of(delta_table(lake.path(table)))
        near = moments_between(
            table.event_time, shifted(start, -stream.margin), shifted(end, stream.margin)
        )
        total += weight_of(table.name, "parquet", rows.size(near))
    return total
