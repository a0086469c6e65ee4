"""Spark's expressions over columns that the driver holds; only what they refer to is sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
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
        self._parts: dict[tuple[tuple[int, ...], ...], PlannedProjection] = {}

    def of(self, rows: pa.Table) -> pa.Table:
        """The columns for each row, in the order of the rows."""
        if not rows.num_rows:
            return self.of(_nothing(rows.schema)).slice(1)
        planned = self.planned(rows.schema)
        sent = self._sent(rows)
        made = planned.of(sent) if planned.usable else None
        if made is None:
            made = self._columns.of(sent).toArrow().sort_by(PLACE)
        return made.drop_columns([PLACE])

    def used(self, schema: pa.Schema) -> list[str]:
        """The columns that the expressions refer to."""
        self.planned(schema)
        return self._used

    def planned(self, schema: pa.Schema) -> PlannedProjection:
        """What Spark plans for rows of a schema. Its first column is `_place`."""
        if self._planned is None:
            every = _nothing(schema).append_column(PLACE, pa.array([0], pa.int64()))
            used = columns_used(self._columns.of(self._spark.createDataFrame(every)))
            self._used = [name for name in schema.names if name in used]
            like = self._sent(_nothing(schema))
            self._planned = PlannedProjection(self._spark, self._columns.of, like)
        return self._planned

    def parts(self, places: Sequence[tuple[int, ...]], rows: pa.Table) -> pa.Table | None:
        """Parts of the expressions for each row, by their places among the columns.

        None where Spark cannot compute them without a job.
        """
        planned = self.planned(rows.schema)
        key = tuple(places)
        if key not in self._parts:
            self._parts[key] = planned.parts(places)
        return self._parts[key].of(self._sent(rows))

    def _sent(self, rows: pa.Table) -> DataFrame:
        place = pa.array(range(rows.num_rows), pa.int64())
        sent: DataFrame = self._spark.createDataFrame(
            rows.select(self._used).append_column(PLACE, place)
        )
        return sent


def _nothing(schema: pa.Schema) -> pa.Table:
    """One row without any value."""
    return pa.table([pa.nulls(1, field.type) for field in schema], schema=schema)
