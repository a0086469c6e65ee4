"""Watermarks in Spark's plans: one that rows carry in a column, and filters that hold one back.

Spark collects a watermark from the column that `withWatermark` names, and its operators find their
event time by a key in the metadata of a column. So the two can be different columns. Written for
Spark 4.2, whose key it is; where another version does not know it, no stateful operator starts.

A filter that does not touch the event time is moved towards the source, below the watermark. What
it drops then no longer moves it: windows, joins and repeats above wait for the next row that
passes, and forever where none comes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from rivermark.model.stream import Stream, lateness_of, needed_lateness
from rivermark.model.table import Table
from rivermark.model.time import MILLISECOND
from rivermark.model.watermark import WATERMARK_AFTER
from rivermark.runtime.spark.joins import CARRIED, WATERMARK, each, joins_streams, nodes


def with_carried_watermark(
    rows: DataFrame, event_time: str, lateness: timedelta, own: timedelta
) -> DataFrame:
    """The rows, whose event time has the watermark that they carry, less a lateness of one's own.

    `lateness` is how far apart two rows of one event time may come, as for operators that drop
    repeats. No row moves the watermark beyond its own time: then rows may be read in the order of
    their times as well as in that of commits.
    """
    moving = f"{CARRIED}{event_time}"
    carried, time = F.col(WATERMARK_AFTER.name), F.col(event_time)
    reached = F.when(carried.isNotNull(), F.least(carried, time) - F.lit(own))
    collected = rows.withColumn(moving, reached).withWatermark(moving, "0 milliseconds")
    # With the other column in it no filter on the event time is moved below the watermark.
    kept = F.coalesce(time, F.col(moving))
    watermarked = kept.alias(event_time, metadata={WATERMARK: lateness // MILLISECOND})
    return collected.select([watermarked if c == event_time else F.col(c) for c in rows.columns])


NODE: Final = "EventTimeWatermark"
STATEFUL: Final = ("Aggregate", "Deduplicate", "DeduplicateWithinWatermark")
"""Operators that wait for the watermark, beside joins of two streams."""
OWN: Final = ("IsNotNull",)
"""Conditions that Spark adds of its own accord, for the keys of a join."""


def pushed_filters(built: DataFrame) -> list[str]:
    """The conditions of a stream's build that hold its watermark back, as Spark writes them."""
    # Asked of the optimizer itself: a query's own plan refuses streams that were not started.
    optimizer: Any = built.sparkSession._jsparkSession.sessionState().optimizer()
    plan = optimizer.execute(built._jdf.queryExecution().analyzed())
    if not any(_waits(node) for node in nodes(plan)):
        return []
    conditions = [
        condition.sql()
        for watermark in nodes(plan)
        if watermark.nodeName() == NODE
        for node in nodes(watermark.child())
        if node.nodeName() == "Filter"
        for condition in _conjuncts(node.condition())
        if condition.nodeName() not in OWN
    ]
    return [*dict.fromkeys(conditions)]


def _waits(node: Any) -> bool:
    return node.nodeName() in STATEFUL or joins_streams(node)


def _conjuncts(condition: Any) -> Iterator[Any]:
    if condition.nodeName() == "And":
        for part in each(condition.children()):
            yield from _conjuncts(part)
    else:
        yield condition


def moving(table: Table) -> str:
    """The column of a table by which streams that read it come on in event time."""
    assert table.event_time is not None  # noqa: S101 - checked by the declaration
    carried = WATERMARK_AFTER.name in table.schema.names
    return WATERMARK_AFTER.name if carried else table.event_time


def run_by(query: StreamingQuery, millis: int, planned: int) -> None:
    """Have the next batch of a query that rests run by a watermark (ms), if it is a later one.

    `planned` is its last batch. A look that found no input has noted for the batch behind it the
    watermark of then, as its operators would see it: that note is taken back.
    """
    execution: Any = query._jsq.streamingQuery()
    tracker = execution.watermarkTracker()
    if millis <= tracker.currentWatermark():
        return
    propagator = _field_of(execution, "watermarkPropagator")
    noted = None if propagator is None else _field_of(propagator, "batchIdToWatermark")
    while noted is not None and not noted.isEmpty() and noted.lastKey() > planned:
        noted.pollLastEntry()
    tracker.setWatermark(millis)


def _field_of(held: Any, name: str) -> Any:
    """A field of an object of the JVM that only the object itself may read; None if it has none."""
    for field in held.getClass().getDeclaredFields():
        if field.getName() == name:
            field.setAccessible(True)
            return field.get(held)
    return None


def with_watermark(stream: Stream, table: Table, rows: DataFrame) -> DataFrame:
    """Rows of a table that the stream reads, with its watermark on their event time.

    It is the one that the rows carry, where they do, else the newest event time less the lateness:
    of a table that was not written yet since its rows are to carry one, too.
    """
    assert table.event_time is not None  # noqa: S101 - checked by the declaration
    lateness = lateness_of(stream)
    if WATERMARK_AFTER.name in rows.columns:
        own = lateness - needed_lateness(stream)
        return with_carried_watermark(rows, table.event_time, lateness, own)
    return rows.withWatermark(table.event_time, f"{lateness // MILLISECOND} milliseconds")
