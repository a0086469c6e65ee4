"""Repeats of an event are left out: of rows with equal keys the first to arrive stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from rivermark.model.errors import DeclarationError
from rivermark.operators.reach import Reach, declare, measure_repeats, measuring

ARRIVAL: Final = ("_ingest_batch", "_file", "_row")
"""The order in which admitted rows arrived: ingest batch, file, line."""


def first_of_each(
    *keys: str, event_time: str, within: timedelta
) -> Callable[[DataFrame], DataFrame]:
    """Keep the first row of each key; a repeat is forgotten about `within` after its original.

    For `DataFrame.transform`. On a stream this is Spark's own operator, whose memory is the delay
    of the watermark: declare the stream with a `lateness` equal to `within`, and state holds the
    keys of about twice that time. The event time is no part of the key, so an event that is sent
    again with another time is a repeat too.

    On a table a row is a repeat when a row of its key that arrived before it is at most `within`
    older, or younger. The two agree for every repeat whose time is at most `within` after its
    original's, whatever the batches: behind an ingest nothing comes that is older than the
    watermark, so the original is still remembered. A repeat dated later than that may pass or not
    on a stream, by what else had come: days with one that lies near another repeat are not computed
    again. Of copies that differ and come in one batch, a stream keeps any. Rows need the columns
    ARRIVAL on a table.
    """
    if not keys or within <= timedelta(0):
        raise DeclarationError(
            f"first_of_each {keys} within {within}: name the keys, and give a time above zero"
        )

    def keep_first(events: DataFrame) -> DataFrame:
        declare(Reach("repeats", f"first_of_each within {within}", within))
        if events.isStreaming:
            return events.dropDuplicatesWithinWatermark([*keys])
        return without_repeats(events, keys, event_time, within)

    return keep_first


def without_repeats(
    events: DataFrame, keys: Sequence[str], event_time: str, within: timedelta
) -> DataFrame:
    """The same on a table: compare each row with the newest of its key that came before it."""
    before = (
        Window.partitionBy(*keys)
        .orderBy(*ARRIVAL)
        .rowsBetween(Window.unboundedPreceding, Window.currentRow - 1)
    )
    newest_before = F.max(event_time).over(before)
    first = F.col("_newest_before").isNull() | (
        F.col(event_time) > F.col("_newest_before") + F.lit(within)
    )
    marked = events.withColumn("_newest_before", newest_before)
    if measuring():
        # A chain: the original is forgotten on a stream, and only a repeat of it lies near.
        original = F.last(F.when(first, F.col(event_time)), ignorenulls=True).over(before)
        marked = marked.withColumn("_original", original)
        forgotten = ~first & (F.col(event_time) > F.col("_original") + F.lit(within))
        marked = measure_repeats(marked, event_time, forgotten).drop("_original")
    return marked.where(first).drop("_newest_before")
