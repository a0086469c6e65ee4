"""A batch that Spark's tasks write is the one that the driver writes, row for row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from rivermark import Ingest, Rule
from tests.unit.ingest.test_admission_by_tasks import (
    EVENTS,
    OF_PRODUCERS,
    assert_no_row_is_lost,
    carried,
    twins,
)

pytestmark = pytest.mark.spark

OF_SPARK = replace(
    EVENTS,
    contract=replace(
        EVENTS.contract,
        rules=(
            *EVENTS.contract.rules,
            Rule("seventh", lambda: F.col("id") % 7 == 0, "quarantine", "Of every seven one."),
        ),
    ),
)


@pytest.mark.parametrize(
    "ingest",
    [
        pytest.param(EVENTS, id="rules in SQL"),
        pytest.param(OF_SPARK, id="a rule of Spark"),
        pytest.param(OF_PRODUCERS, id="of producers", marks=pytest.mark.long),
    ],
)
def test_rows_are_the_same_by_driver_and_tasks(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ingest: Ingest
) -> None:
    monkeypatch.setattr("rivermark.ingest.admission.PIECE_BYTES", 3_000)
    driver, tasks = twins(tmp_path, ingest, spark)

    assert tasks.run() == driver.run()
    assert tasks.rows() == driver.rows()
    assert all(in_log == in_folder for in_log, in_folder in tasks.files().values())
    assert_no_row_is_lost(tasks)
    assert carried(tasks) == carried(driver)
