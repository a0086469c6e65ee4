"""Rows judged by the verdict on their file."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermark.ingest.file_statistics import FileFacts
from rivermark.ingest.parse.parser import PROBLEMS
from rivermark.ingest.watermark import Verdict


def judged(rows: DataFrame, event_time: str, bounds: Mapping[str, Verdict]) -> DataFrame:
    """Add `_ahead`, `_is_late` and `_watermark`; only the files in `bounds` have any such row."""
    watermark = lookup({name: v.watermark for name, v in bounds.items()})
    ceiling = lookup({name: v.ceiling for name, v in bounds.items()})
    valid = F.size(PROBLEMS) == 0
    time = F.col(event_time)
    ahead = valid & F.coalesce(time > ceiling, F.lit(False))
    late = valid & ~ahead & F.coalesce(time <= watermark, F.lit(False))
    return rows.withColumns({"_ahead": ahead, "_is_late": late, "_watermark": watermark})


def lookup(moments: Mapping[str, datetime | None]) -> Column:
    """The moment that belongs to a row's file, or null."""
    found = {name: at for name, at in moments.items() if at is not None}
    if not found:
        return F.lit(None).cast("timestamp")
    pairs = [F.lit(v) for name, at in found.items() for v in (name, at)]
    return F.create_map(*pairs)[F.col("_file")]


def may_miss(facts: FileFacts | None, verdict: Verdict) -> bool:
    """Whether a file can hold late rows or rows ahead of the stream, by its span of event times."""
    if facts is None or facts.oldest is None or facts.newest is None:
        return False
    behind = verdict.watermark is not None and facts.oldest <= verdict.watermark
    ahead = verdict.ceiling is not None and facts.newest > verdict.ceiling
    return behind or ahead


def count_missed(rows: DataFrame) -> dict[str, tuple[int, int]]:
    """For each file, its late rows and its rows ahead of the stream."""
    counted = rows.groupBy("_file").agg(
        F.count_if("_is_late").alias("late"), F.count_if("_ahead").alias("ahead")
    )
    return {r["_file"]: (r["late"], r["ahead"]) for r in counted.collect()}
