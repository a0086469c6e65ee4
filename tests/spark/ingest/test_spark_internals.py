"""What is planned once gives the rows that Spark gives when it plans each batch anew."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.ingest import spark_internals
from rivermark.ingest.spark_internals import ROWS, CachedColumns, PlannedProjection

pytestmark = pytest.mark.spark


def lines(first: int, count: int) -> pa.Table:
    """Rows of several types, with nulls."""
    ids = range(first, first + count)
    at = datetime(2024, 3, 1, tzinfo=UTC)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "at": pa.array([at + timedelta(seconds=n) for n in ids], pa.timestamp("us", "UTC")),
            "payload": pa.array(
                [None if n % 7 == 0 else f'{{"fare": "{n}.50"}}' for n in ids], pa.string()
            ),
        }
    )


def read(rows: DataFrame) -> DataFrame:
    """Two projections, of which the second uses the first one's columns twice."""
    cut = rows.withColumn("cut", F.from_json("payload", "fare string"))
    fare = F.col("cut.fare").cast("decimal(12,2)")
    return cut.select(
        "id", "at", fare.alias("fare"), F.when(fare > 5, F.array("payload")).alias("dear")
    )


def test_each_batch_is_told_as_spark_tells_it(spark: SparkSession) -> None:
    planned = PlannedProjection(spark, read, spark.createDataFrame(lines(0, 1)))
    assert planned.usable

    for first, count in ((0, 1), (1, 20), (100, 3), (0, ROWS + 7)):
        rows = spark.createDataFrame(lines(first, count))
        assert planned.of(rows) == read(rows).toArrow()

    found = planned.of(spark.createDataFrame(lines(1, 1)))
    assert found is not None
    assert found["fare"].to_pylist() == [Decimal("1.50")]


def test_what_tells_the_time_is_planned_anew(spark: SparkSession) -> None:
    def build(rows: DataFrame) -> DataFrame:
        return rows.select("id", F.current_timestamp().alias("now"))

    assert not PlannedProjection(spark, build, spark.createDataFrame(lines(0, 1))).usable


def test_what_is_more_than_a_projection_is_planned_anew(spark: SparkSession) -> None:
    def build(rows: DataFrame) -> DataFrame:
        return rows.groupBy("payload").count()

    assert not PlannedProjection(spark, build, spark.createDataFrame(lines(0, 1))).usable


def test_rows_that_are_not_in_memory_are_told_apart(spark: SparkSession) -> None:
    planned = PlannedProjection(spark, read, spark.createDataFrame(lines(0, 1)))

    assert planned.of(spark.range(3).select("id", F.lit(None).alias("at"))) is None


def test_rows_of_another_schema_are_told_apart(spark: SparkSession) -> None:
    planned = PlannedProjection(spark, read, spark.createDataFrame(lines(0, 1)))
    other = lines(0, 1).set_column(0, "id", pa.array([1], pa.int32()))

    assert planned.of(spark.createDataFrame(other)) is None


def test_another_version_of_spark_is_used_by_its_public_api(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = spark.createDataFrame(lines(0, 9))
    columns = [F.col("id"), F.upper("payload").alias("payload")]
    known = CachedColumns(columns).of(rows).toArrow()
    monkeypatch.setattr(spark_internals, "IS_KNOWN", False)

    assert CachedColumns(columns).of(rows).toArrow() == known
    assert not PlannedProjection(spark, read, rows).usable
