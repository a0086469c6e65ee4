"""Files that change after they were read (case B044): noticed by content, and read again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from rivermark.ingest import plan, split_outcomes
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, reading, rows, run

pytestmark = pytest.mark.spark


def test_b044_a_plan_and_a_ledger_of_an_earlier_release_go_on(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_new_columns(schema: StructType) -> StructType:
        return StructType([f for f in schema if f.name not in ("digest", "replaced")])

    landing.put(f"{FOLDER}/1.json", reading(0))
    with monkeypatch.context() as patch:
        patch.setattr(plan, "PLAN_SCHEMA", without_new_columns(plan.PLAN_SCHEMA))
        earlier = split_outcomes.INGEST_FILES
        earlier = replace(earlier, schema=without_new_columns(earlier.schema))
        for module in ("ingest.split_outcomes", "ingest.admission"):
            patch.setattr(f"rivermark.{module}.INGEST_FILES", earlier)
        run(spark, settings, READINGS)
    landing.put(f"{FOLDER}/2.json", reading(1))
    run(spark, settings, READINGS)

    assert len(rows(spark, settings, READINGS.admitted)) == 2
    ledger = rows(spark, settings, split_outcomes.INGEST_FILES)
    assert [row["digest"] is None for row in sorted(ledger, key=lambda r: r["file"])] == [
        True,
        False,
    ]
