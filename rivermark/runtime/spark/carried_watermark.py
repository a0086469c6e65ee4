"""A watermark that rows carry in a column beside their event time.

Spark collects a watermark from the column that `withWatermark` names, and its operators find their
event time by a key in the metadata of a column. So the two can be different columns. Written for
Spark 4.2, whose key it is; where another version does not know it, no stateful operator starts.
"""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from rivermark.model.time import MILLISECOND
from rivermark.model.watermark import WATERMARK_AFTER
from rivermark.runtime.spark.join_state_check import CARRIED, WATERMARK


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
