"""R17: a filter of Spark that is moved below the watermark is named, with what to write."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.operators import TumblingWindow, first_of_each, keep, per_window
from rivermark.runtime.spark.watermarks import pushed_filters

pytestmark = pytest.mark.spark

HOUR = timedelta(hours=1)
FIRST = first_of_each("n", event_time="at", within=HOUR)


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> DataFrame:
    rows = spark.readStream.schema("kind string, n long, at timestamp").parquet(str(tmp_path))
    return rows.withWatermark("at", "1 minute")


def counted(events: DataFrame) -> DataFrame:
    return per_window(events, TumblingWindow(HOUR), "at", rows=F.count("*"))


def joined(events: DataFrame) -> DataFrame:
    other = events.select(F.col("n").alias("m"), F.col("at").alias("then"))
    return events.join(other, F.expr("n = m AND then BETWEEN at AND at + INTERVAL 1 MINUTE"))


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda e: counted(e.where(F.col("kind") == "taken")), "kind = 'taken'"),
        (lambda e: counted(e.where("n > 3 AND at IS NOT NULL")), "n > "),
        (lambda e: counted(e.select("*", F.upper("kind").alias("u")).where("u = 'A'")), "upper("),
        (lambda e: joined(e.where("n > 3")), "n > "),
        (
            lambda e: e.where("n > 3").transform(first_of_each("n", event_time="at", within=HOUR)),
            "n",
        ),
        (lambda e: counted(e.where("n > 3").unionByName(e.where("kind = 'a'"))), "n > "),
    ],
)
def test_r17_a_filter_that_holds_a_watermark_back_is_named(
    events: DataFrame, build: Callable[[DataFrame], DataFrame], named: str
) -> None:
    assert named in "; ".join(pushed_filters(build(events)))


@pytest.mark.parametrize(
    "build",
    [
        counted,
        joined,
        lambda e: e.where(F.col("kind") == "taken"),
        lambda e: counted(e.transform(keep(F.col("kind") == "taken", event_time="at"))),
        lambda e: counted(e).where("rows > 2"),
    ],
)
def test_r17_what_holds_nothing_back_is_not_named(
    events: DataFrame, build: Callable[[DataFrame], DataFrame]
) -> None:
    assert pushed_filters(build(events)) == []
