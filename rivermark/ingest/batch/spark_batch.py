"""A parsed batch that stays on the executors: for batches too large for the driver."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermark.ingest.batch.base import AHEAD, META_COLUMNS, RAW_COLUMNS, ParsedBatch
from rivermark.ingest.late_rows import count_marked, lookup, mark_rows
from rivermark.ingest.parse.problems import DETAILS, PROBLEMS
from rivermark.ingest.split_statistics import SplitStatistics, gather, line_numbers
from rivermark.ingest.watermark import Bounds, utc
from rivermark.model.stream import Ingest
from rivermark.model.watermark import WATERMARK_AFTER


class SparkBatch(ParsedBatch):
    """Holds the rows in Spark's cache, and evaluates them with one job a question."""

    def __init__(self, rows: DataFrame, ingest: Ingest) -> None:
        super().__init__(ingest)
        self._rows = rows.persist()
        self._marked = self._rows

    def statistics(self) -> dict[str, SplitStatistics]:
        """One aggregation over the batch."""
        statistics, parts = gather(self._rows, self.time, self.mark_field)
        numbered = self._rows
        if parts and "_row" not in numbered.columns:
            numbered = numbered.withColumn("_row", line_numbers(parts))
        self._marked = numbered.where("_record")
        return statistics

    def newest_until(self, split: str, ceiling: datetime) -> datetime | None:
        """One more aggregation over the split's rows."""
        return self._latest(self.time, split, ceiling)

    def mark_until(self, split: str, ceiling: datetime) -> datetime | None:
        """The same of the marks."""
        return self._latest(self.mark_field, split, ceiling) if self.mark_field else None

    def _latest(self, column: str, split: str, ceiling: datetime) -> datetime | None:
        good = (F.col("_file") == split) & F.col("_record") & (F.size(PROBLEMS) == 0)
        inside = good & (F.col(self.time) <= F.lit(ceiling))
        row = self._rows.where(inside).agg(F.max(column)).first()
        return utc(row[0]) if row else None

    def mark(self, bounds: Mapping[str, Bounds]) -> dict[str, tuple[int, int]]:
        """Add the marks, and count them where there can be any."""
        self._marked = mark_rows(self._marked, self.time, bounds)
        return count_marked(self._marked) if bounds else {}

    def raw(self) -> DataFrame:
        """Every event as it came."""
        return self._marked.select(*RAW_COLUMNS)

    def admitted(self) -> DataFrame:
        """Good, and neither late nor ahead."""
        good = (F.size(PROBLEMS) == 0) & ~F.col("_ahead") & ~F.col("_is_late")
        return self._marked.where(good).select(*self._selected())

    def late(self) -> DataFrame:
        """Late, with the watermark they missed."""
        by = (F.unix_millis("_watermark") - F.unix_millis(self.time)).alias("_late_by_ms")
        return self._marked.where("_is_late").select(*self._selected(), "_watermark", by)

    def _selected(self) -> list[str | Column]:
        """The columns of the admitted table."""
        columns: list[str | Column] = [*self.admitted_columns]
        if self.carries:
            columns.append(lookup(self.after).alias(WATERMARK_AFTER.name))
        return columns

    def quarantined(self) -> DataFrame:
        """With a problem, or ahead."""
        reasons = F.when(F.col("_ahead"), F.array(F.lit(AHEAD))).otherwise(F.col(PROBLEMS))
        return self._marked.where((F.size(PROBLEMS) > 0) | F.col("_ahead")).select(
            *META_COLUMNS,
            reasons.alias("reasons"),
            F.col(DETAILS).alias("details"),
            F.col(self.time).alias("event_time"),
            "payload",
        )

    def close(self) -> None:
        """Empty the cache."""
        self._rows.unpersist()
