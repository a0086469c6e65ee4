"""Spark has the day for a moment that its bounds have, also where local dates fall back."""

from __future__ import annotations

from datetime import UTC, date

import pytest
from pyspark.sql import SparkSession

from rivermark.lake.day_predicates import day_column
from rivermark.model.table import Daily
from tests.oracles.zones import ODD, odd_moments

pytestmark = pytest.mark.spark

YEARS = (1995, 2011)
"""Later rules may be newer than the zones of the JVM."""


def test_n075_spark_has_the_day_of_the_bounds(spark: SparkSession) -> None:
    days = {zone: Daily(column="at", start=date(1970, 1, 1), zone=zone) for zone in ODD[:6]}
    moments = sorted({at for zone in days for at in odd_moments(zone, *YEARS)})
    frame = spark.createDataFrame([(at,) for at in moments], "at timestamp")

    columns = [day_column(daily, "at").alias(zone) for zone, daily in days.items()]
    rows = frame.select("at", *columns).toArrow().to_pylist()

    for zone, daily in days.items():
        wrong = {
            row["at"]: row[zone]
            for row in rows
            if row[zone] != daily.day_of(row["at"].astimezone(UTC))
        }
        assert wrong == {}, zone
