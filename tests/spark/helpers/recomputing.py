"""Days of a stream computed again, in the short form that tests use."""

from __future__ import annotations

from datetime import date

from pyspark.sql import SparkSession

from rivermark.backfill.recompute import Order, replace
from rivermark.backfill.result import Reprocessing
from rivermark.model.stream import Stream
from rivermark.settings import Settings


def recompute_days(
    spark: SparkSession,
    settings: Settings,
    stream: Stream,
    first: date,
    last: date | None = None,
    *,
    run_id: str = "again",
) -> Reprocessing:
    """Replace the days by what the stream's build makes of the newest inputs."""
    order = Order(stream=stream, first=first, last=last or first, run_id=run_id)
    return replace(spark, settings, order)
