"""Rows on Spark that are marked as late or ahead by the bounds of their split."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermark.ingest.parse.problems import PROBLEMS
from rivermark.ingest.split_statistics import SplitStatistics
from rivermark.ingest.watermark import Bounds


def mark_rows(rows: DataFrame, event_time: str, bounds: Mapping[str, Bounds]) -> DataFrame:
    """Add `_ahead`, `_is_late` and `_watermark`; only splits in `bounds` have any such row."""
    watermark = lookup({name: v.watermark for name, v in bounds.items()})
    ceiling = lookup({name: v.ceiling for name, v in bounds.items()})
    valid = F.size(PROBLEMS) == 0
    time = F.col(event_time)
    ahead = valid & F.coalesce(time > ceiling, F.lit(False))
    late = valid & ~ahead & F.coalesce(time <= watermark, F.lit(False))
    return rows.withColumns({"_ahead": ahead, "_is_late": late, "_watermark": watermark})


def lookup(moments: Mapping[str, datetime | None]) -> Column:
    """The moment that belongs to a row's split, or null."""
    known = {name: at for name, at in moments.items() if at is not None}
    if not known:
        return F.lit(None).cast("timestamp")
    pairs = [F.lit(v) for name, at in known.items() for v in (name, at)]
    return F.create_map(*pairs)[F.col("_file")]


def may_exceed(statistics: SplitStatistics | None, bounds: Bounds) -> bool:
    """Whether a split can hold late rows or rows ahead, by its span of event times."""
    if statistics is None or statistics.oldest is None or statistics.newest is None:
        return False
    behind = bounds.watermark is not None and statistics.oldest <= bounds.watermark
    ahead = bounds.ceiling is not None and statistics.newest > bounds.ceiling
    return behind or ahead


def count_marked(rows: DataFrame) -> dict[str, tuple[int, int]]:
    """For each split, its late rows and its rows ahead of the stream."""
    counted = rows.groupBy("_file").agg(
        F.count_if("_is_late").alias("late"), F.count_if("_ahead").alias("ahead")
    )
    return {r["_file"]: (r["late"], r["ahead"]) for r in counted.collect()}
