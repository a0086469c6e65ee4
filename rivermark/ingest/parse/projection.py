"""Spark's expressions over columns that the driver holds; only what they refer to is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from rivermark.ingest.spark_internals import CachedColumns, PlannedProjection, columns_used

PLACE: Final = "_place"
"""Where a row stood among those that were sent."""


class Projection:
    """Named columns over rows of one schema, planned once."""

    def __init__(self, spark: SparkSession, columns: Sequence[tuple[str, Column]]) -> None:
        self._spark = spark
        self._columns = CachedColumns([F.col(PLACE), *(c.alias(name) for name, c in columns)])
        self._used: list[str] = []
        self._planned: PlannedProjection | None = None

    def of(self, rows: pa.Table) -> pa.Table:
        """The columns for each row, in the order of the rows."""
        if not rows.num_rows:
            empty = pa.table([pa.nulls(1, f.type) for f in rows.schema], schema=rows.schema)
            return self.of(empty).slice(1)
        if self._planned is None:
            every = rows.slice(0, 1).append_column(PLACE, pa.array([0], pa.int64()))
            used = columns_used(self._columns.of(self._spark.createDataFrame(every)))
            self._used = [name for name in rows.column_names if name in used]
        place = pa.array(range(rows.num_rows), pa.int64())
        sent = self._spark.createDataFrame(rows.select(self._used).append_column(PLACE, place))
        if self._planned is None:
            self._planned = PlannedProjection(self._spark, self._columns.of, sent)
        made = self._planned.of(sent) if self._planned.usable else None
        if made is None:
            made = self._columns.of(sent).toArrow().sort_by(PLACE)
        return made.drop_columns([PLACE])
