"""A process function drained in runs, kept running or computed again: the rows that it says."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermark.monitor.process_metrics import metrics_of_streams
from rivermark.settings import Settings
from rivermark.testing import assert_rows_equal
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.random_files import files_at_random
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import FOLDER, READINGS, by_value, reading, rows, run
from tests.spark.process.rules import (
    FAILED,
    JUMPS,
    SILENCES,
    WATCHED,
    jumps_by_hand,
    silences_by_hand,
)

pytestmark = pytest.mark.spark

DAY = 24 * 60
LAST = timedelta(minutes=2 * DAY + 1)
"""The newest reading that `land` lands, after ten."""
THE_DAY = date(2024, 3, 1)


def land(landing: Landing, *, seed: int) -> None:
    """Six files of readings in disorder, a poisoned one, and a day later what closes all."""
    for file in files_at_random(seed, 6):
        file.land(landing)
    landing.put(f"{FOLDER}/poison.json", reading(60, "s9", note="poison"))
    landing.put(f"{FOLDER}/end.json", reading(2 * DAY, "end"), reading(2 * DAY + 1, "end"))


def written(spark: SparkSession, settings: Settings) -> dict[str, list[Any]]:
    """Rows of the stream's tables."""
    return {t.name: [tuple(r) for r in rows(spark, settings, t)] for t in WATCHED.tables}


def by_hand(spark: SparkSession, settings: Settings) -> tuple[list[Any], list[Any]]:
    """Jumps and silences as they must be of the readings that were admitted."""
    found = rows(spark, settings, READINGS.admitted, "sensor", "at", "temperature", "note")
    admitted = [(r["sensor"], r["at"], r["temperature"]) for r in found if r["note"] != "poison"]
    end = max(at for _, at, _ in admitted) - timedelta(minutes=2)
    jumps = sorted(jumps_by_hand(admitted), key=by_value)
    return jumps, sorted(silences_by_hand(admitted, end), key=by_value)


@pytest.mark.long
def test_runs_of_any_cut_a_live_run_and_a_recompute_give_what_the_rule_says(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    for file in files_at_random(11, 6)[:3]:
        file.land(landing)
    run(spark, settings, READINGS, WATCHED)
    land(landing, seed=11)
    done = run(spark, settings, READINGS, WATCHED)["test/watched"]

    jumps, silences = by_hand(spark, settings)
    found = written(spark, settings)
    assert len(jumps) >= 3
    assert len(silences) > 3
    assert_rows_equal(found[JUMPS.name], jumps)
    assert_rows_equal(found[SILENCES.name], silences)
    assert [(dead[1], dead[2], dead[5]) for dead in found[FAILED.name]] == [
        ("events", '"s9"', "ValueError")
    ]
    assert done.dropped_by_watermark == 0
    assert metrics_of_streams(settings)["test/watched"] == {"jumps": len(jumps), "step": 30.0}
    assert done.metrics()["metrics/step"] == 30.0

    report = recompute_days(spark, settings, WATCHED, THE_DAY)
    assert sum(o.difference.rows_after for o in report.tables.values()) == (
        len(jumps) + len(silences) + 1
    )
    assert report.same
    assert written(spark, settings) == found
