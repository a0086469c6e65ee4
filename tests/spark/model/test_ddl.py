"""Our reading of DDL is Spark's."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from rivermark.model.ddl import ATOMIC, struct_type

pytestmark = pytest.mark.spark


@pytest.mark.parametrize(
    "text",
    [
        ", ".join(f"c_{name} {name}" for name in ATOMIC),
        "id LONG NOT NULL, tip decimal(12,2) COMMENT 'In dollars, the driver\\'s'",
        "stops array<struct<at: timestamp, fees: map<string, decimal(3,1)>>> COMMENT 'Stops'",
    ],
)
def test_a_schema_is_what_spark_makes_of_it(spark: SparkSession, text: str) -> None:
    assert struct_type(text) == StructType.fromDDL(text)
