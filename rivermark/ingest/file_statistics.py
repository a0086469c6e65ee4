"""What one pass over a batch tells about each of its files: lines, problems, event times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermark.ingest.parse.parser import PROBLEMS
from rivermark.ingest.watermark import utc


@dataclass(frozen=True)
class Part:
    """What one task read of a file: its smallest `_mid`, and the lines of the file before it."""

    file: str
    part: int
    first_mid: int
    lines_before: int


@dataclass
class FileFacts:
    """A file in figures: its records, those set aside, the span of its valid event times (UTC)."""

    rows: int = 0
    quarantined: int = 0
    oldest: datetime | None = None
    newest: datetime | None = None


def gather(parsed: DataFrame, event_time: str) -> tuple[dict[str, FileFacts], list[Part]]:
    """Count each file's rows and find its event-time span, with one job over the parsed batch.

    `parsed` holds every line, also headers and empty ones, with `_record` telling the events apart:
    line numbers count them all.
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
        )
        .collect()
    )
    files: dict[str, FileFacts] = {}
    parts: list[Part] = []
    lines: dict[str, int] = {}
    for row in sorted(rows, key=lambda r: (r["_file"], r["mid"])):
        name = row["_file"]
        parts.append(Part(name, row["_part"], row["mid"], lines.get(name, 0)))
        lines[name] = lines.get(name, 0) + row["lines"]
        facts = files.setdefault(name, FileFacts())
        facts.rows += row["rows"]
        facts.quarantined += row["quarantined"]
        facts.oldest = pick(min, facts.oldest, utc(row["oldest"]))
        facts.newest = pick(max, facts.newest, utc(row["newest"]))
    return files, parts


def pick(
    choose: Callable[[datetime, datetime], datetime], left: datetime | None, right: datetime | None
) -> datetime | None:
    """The smaller or larger of two moments, either of which may be missing."""
    if left is None or right is None:
        return left or right
    return choose(left, right)


def line_numbers(parts: list[Part]) -> Column:
    """Line number (from 1) of a row in its file, from `_file`, `_part` and `_mid`."""
    offset = F.create_map(
        *[F.lit(v) for p in parts for v in (f"{p.part}|{p.file}", p.lines_before + 1 - p.first_mid)]
    )
    return F.col("_mid") + offset[F.concat_ws("|", F.col("_part").cast("string"), F.col("_file"))]
