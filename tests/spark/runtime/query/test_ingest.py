"""An ingest's batches: the plan's rows by its log are those that Spark reads."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from rivermark.ingest.plan import planned_split
from rivermark.model.source import PlannedSplit
from rivermark.runtime.checkpoint.positions import commits_of_batch
from rivermark.runtime.query.ingest import IngestHost
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, one_file_a_batch, reading, run

pytestmark = pytest.mark.spark


def test_the_plan_is_read_by_its_log_as_spark_reads_it(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs: dict[int, bool] = {}
    read = IngestHost._planned_rows

    def compared(host: IngestHost, frame: DataFrame, batch: int) -> list[dict[str, Any]]:
        jobs[batch] = commits_of_batch(host.checkpoint, batch) is None
        rows = read(host, frame, batch)
        by_spark = [planned_split(row.asDict()) for row in frame.collect()]
        assert ordered(map(planned_split, rows)) == ordered(by_spark)
        return rows

    monkeypatch.setattr(IngestHost, "_planned_rows", compared)
    [ingest] = one_file_a_batch(monkeypatch, READINGS)
    for start in range(2):
        for n in range(3):
            landing.put(f"{FOLDER}/{start}{n}.json", reading(10 * start + n), reading(n, None))
        summary = run(spark, settings, ingest)[ingest.name]
        assert summary.rows_in == 6

    assert jobs == {0: True} | dict.fromkeys(range(1, 6), False)


def ordered(splits: Any) -> list[PlannedSplit]:
    """Splits in the order of their plan."""
    return sorted(splits, key=lambda split: (split.batch, split.path))
