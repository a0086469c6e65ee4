"""Spark reads what was appended without it, skips its files, and tells its history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.lake.batch_writer import TableWriter
from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import rows_of
from rivermark.model.sink import Origin
from rivermark.model.table import Table
from tests.growing_rows import growing

SEEN = Table(
    name="test/seen",
    schema=StructType(
        [
            StructField("id", LongType()),
            StructField("at", TimestampType()),
            StructField("day", DateType()),
            StructField("fare", DecimalType(12, 2)),
            StructField("large", DecimalType(38, 4)),
            StructField("degrees", DoubleType()),
            StructField("zone", StringType()),
            StructField("place", StructType([StructField("zone", StringType())])),
            StructField("tags", ArrayType(StringType())),
        ]
    ),
    description="Everything that a column can be.",
)


def seen(n: int) -> dict[str, Any]:
    """A row of the table."""
    row = growing(n)
    return {**row, "place": {"zone": row["zone"]}, "tags": [str(n), "x"]}


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Ten commits of ten rows each."""
    lake = Lake(str(tmp_path / "lake"))
    create_table(lake, SEEN)
    writer = TableWriter(lake, SEEN, Origin("test/seen", 0, datetime.now(UTC), "run"))
    for batch in range(10):
        rows = [seen(n) for n in range(10 * batch, 10 * batch + 10)]
        writer.append_once(rows_of(SEEN, rows), batch)
    return lake.path(SEEN)


def test_every_row_comes_back_as_it_was(spark: SparkSession, path: str) -> None:
    found = spark.read.format("delta").load(path).orderBy("id").collect()

    for n, row in enumerate(found):
        told = row.asDict(recursive=True)
        told["at"] = told["at"].astimezone(UTC)
        assert told == seen(n)
    assert len(found) == 100


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        ("at", (9, 10)),
        *(
            pytest.param(each, (0, 9, 10, 55, 99), marks=pytest.mark.long)
            for each in ("at", "id", "zone", "day", "fare", "large", "degrees", "place.zone")
        ),
    ],
)
def test_no_row_is_skipped_that_a_filter_asks_for(
    spark: SparkSession, path: str, column: str, numbers: tuple[int, ...]
) -> None:
    found = spark.read.format("delta").load(path)
    for n in numbers:
        row = seen(n)
        value = row["place"]["zone"] if "." in column else row[column]
        asked = F.lit(value).cast(found.select(column).schema[0].dataType)
        assert found.where(F.col(column) == asked).count() == 1
        assert found.where(F.col(column) >= asked).count() == 100 - n


def test_files_are_skipped(spark: SparkSession, path: str) -> None:
    found = spark.read.format("delta").load(path)
    late = found.where(F.col("at") > F.lit(seen(90)["at"] - timedelta(seconds=0.5)))

    assert late.select(F.input_file_name()).distinct().count() == 1
    plan = late._jdf.queryExecution().executedPlan()
    late._jdf.collectToPython()
    read = [plan.collectLeaves().apply(n) for n in range(plan.collectLeaves().size())]
    assert [node.metrics().apply("numFiles").value() for node in read] == [1]


def test_its_history_is_told(spark: SparkSession, path: str) -> None:
    newest = spark.sql(f"DESCRIBE HISTORY delta.`{path}`").orderBy(F.desc("version")).first()

    assert newest is not None
    assert (newest["operation"], newest["isBlindAppend"]) == ("WRITE", True)
    assert newest["operationMetrics"]["numOutputRows"] == "10"
    assert '"batch":9' in newest["userMetadata"]
