"""With another Spark than the private accesses were written for: the public ways, the same rows."""

from __future__ import annotations

import threading

import pytest
from pyspark.sql import SparkSession

from rivermark import Topology
from rivermark.lake.snapshot import row_count
from rivermark.runtime.spark import version
from rivermark.runtime.spark.input_size import input_bytes
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.background import running
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, reading, rows, run, windows

pytestmark = pytest.mark.spark

PER_WINDOW = windows()
STREAMS = (READINGS, PER_WINDOW)


@pytest.mark.long
def test_on_another_version_the_public_interface_writes_the_same_rows(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert version.is_known_version()
    monkeypatch.setattr(version, "WRITTEN_FOR", "0.0")
    assert input_bytes(spark.range(1)) is None
    landing.put(f"{FOLDER}/1.json", reading(0), reading(9))
    drained = run(spark, settings, *STREAMS)
    assert drained[PER_WINDOW.name].rows_in == 2

    def live(stop: threading.Event) -> object:
        return run_continuous(spark, settings, Topology(STREAMS), STREAMS, run_id="r", stop=stop)

    table = PER_WINDOW.tables[0]
    with running(live) as thread:
        landing.put(f"{FOLDER}/2.json", reading(20))
        wait_until(
            lambda: row_count(settings.lake(), table) == 2, reason="windows", alive=thread.alive
        )
    assert [r["readings"] for r in rows(spark, settings, table)] == [1, 1]
