"""The statistics of each split of a batch, by one pass: records, problems, event times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermark.ingest.parse.problems import PROBLEMS
from rivermark.ingest.watermark import utc


@dataclass(frozen=True)
class Part:
    """What one task read of a split: its smallest `_mid`, and the records of the split before."""

    split: str
    part: int
    first_mid: int
    records_before: int


@dataclass
class SplitStatistics:
    """A split in figures: its records, those quarantined, the span of valid event times (UTC).

    `skipped` counts what is no event: header lines and empty ones, tombstones. `mark` is the latest
    time up to which one of the valid rows says that its producer is complete.
    """

    rows: int = 0
    quarantined: int = 0
    skipped: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None
    mark: datetime | None = None


def gather(
    parsed: DataFrame, event_time: str, mark: str | None
) -> tuple[dict[str, SplitStatistics], list[Part]]:
    """Count each split's rows and find its event-time span, with one job over the parsed batch.

    `parsed` holds every line, also headers and empty ones, marked by `_record`:
    line numbers count them all. `mark` is the field of marks, where there is one.
    """
    record = F.col("_record")
    good = record & (F.size(PROBLEMS) == 0)
    rows = (
        parsed.groupBy("_file", "_part")
        .agg(
            F.min("_mid").alias("mid"),
            F.count(F.lit(1)).alias("lines"),
            F.count_if(record).alias("rows"),
            F.count_if(record & ~good).alias("quarantined"),
            F.min(F.when(good, F.col(event_time))).alias("oldest"),
            F.max(F.when(good, F.col(event_time))).alias("newest"),
            F.max(F.when(good, F.col(mark) if mark else F.lit(None))).alias("mark"),
        )
        .collect()
    )
    splits: dict[str, SplitStatistics] = {}
    parts: list[Part] = []
    lines: dict[str, int] = {}
    for row in sorted(rows, key=lambda r: (r["_file"], r["mid"])):
        name = row["_file"]
        parts.append(Part(name, row["_part"], row["mid"], lines.get(name, 0)))
        lines[name] = lines.get(name, 0) + row["lines"]
        figures = splits.setdefault(name, SplitStatistics())
        figures.rows += row["rows"]
        figures.quarantined += row["quarantined"]
        figures.skipped += row["lines"] - row["rows"]
        figures.oldest = pick(min, figures.oldest, utc(row["oldest"]))
        figures.newest = pick(max, figures.newest, utc(row["newest"]))
        figures.mark = pick(max, figures.mark, utc(row["mark"]))
    return splits, parts


def pick(
    choose: Callable[[datetime, datetime], datetime], left: datetime | None, right: datetime | None
) -> datetime | None:
    """The smaller or larger of two moments, either of which may be missing."""
    if left is None or right is None:
        return left or right
    return choose(left, right)


def line_numbers(parts: list[Part]) -> Column:
    """The place (from 1) of a row in its split, from `_file`, `_part` and `_mid`."""
    offset = F.create_map(
        *[
            F.lit(v)
            for p in parts
            for v in (f"{p.part}|{p.split}", p.records_before + 1 - p.first_mid)
        ]
    )
    return F.col("_mid") + offset[F.concat_ws("|", F.col("_part").cast("string"), F.col("_file"))]
