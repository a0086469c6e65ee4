"""A process function that is kept running gives the same as one that is drained."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession

from rivermark import Topology
from rivermark.lake.snapshot import row_count
from rivermark.lake.statistics import largest
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.background import running
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import READINGS, TEN
from tests.spark.process.rules import JUMPS, SILENCES, WATCHED
from tests.spark.process.test_modes import LAST, by_hand, land, written

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_a_live_run_gives_the_same_as_a_drained_one(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    def body(stop: threading.Event) -> object:
        streams = (READINGS, WATCHED)
        return run_continuous(spark, settings, Topology(streams), streams, run_id="live", stop=stop)

    with running(body) as thread:
        land(landing, seed=12)
        wait_until(
            lambda: (
                largest(settings.lake(), READINGS.admitted, "at") == TEN + LAST
                and row_count(settings.lake(), SILENCES) >= len(by_hand(spark, settings)[1]) > 3
            ),
            reason="all is read, and all silences but the last are told",
            alive=thread.alive,
        )
    jumps, silences = by_hand(spark, settings)
    found = written(spark, settings)
    assert found[JUMPS.name] == jumps
    assert found[SILENCES.name] == silences
