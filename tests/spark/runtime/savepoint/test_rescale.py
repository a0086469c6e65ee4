"""State in other numbers of partitions: a process function, windows, a join go on as if in one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermark import Stream
from rivermark.lake.delta import dataset_of, delta_table
from rivermark.model.topology import Topology
from rivermark.operators.windows import TumblingWindow
from rivermark.process.spark import run_process
from rivermark.runtime.savepoint.rescale import rescale
from rivermark.runtime.savepoint.resume import Order
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import READINGS, run
from tests.spark.helpers.stateful_streams import ECHOES, answers, land_feeds
from tests.spark.helpers.windowed_streams import ProcessSessions, windowed

pytestmark = [pytest.mark.spark, pytest.mark.long]

SESSIONS = windowed("test/sessions", build=run_process(ProcessSessions, buckets=5))
HEAP = windowed("test/windows", TumblingWindow(timedelta(minutes=10)))
WINDOWS = replace(HEAP, state_store="rocksdb")
ANSWERS = replace(answers(), state_store="rocksdb")
STREAMS: tuple[Stream, ...] = (SESSIONS, WINDOWS, ANSWERS)
ALL = Topology([READINGS, ECHOES, *STREAMS])


def land(settings: Settings, part: int) -> None:
    land_feeds(Landing(Path(settings.landing_root)), seed=7 + part, files=4, hour=part)


def rows_in(settings: Settings) -> dict[str, list[Any]]:
    lake = settings.lake()
    tables = [table for stream in STREAMS for table in stream.tables]
    return {
        t.name: sorted(map(repr, dataset_of(delta_table(lake.path(t))).to_table().to_pylist()))
        for t in tables
    }


def test_rows_are_the_same_in_one_two_and_eight_partitions_also_if_that_changes(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = Settings(home=tmp_path / "one", trigger_seconds=0.1, shuffle_partitions=1)
    grown = Settings(home=tmp_path / "grown", trigger_seconds=0.1, shuffle_partitions=2)
    for part, partitions in enumerate((8, 1, 0)):
        for settings in (one, grown):
            land(settings, part)
            run(spark, settings, READINGS, ECHOES, *STREAMS)
        for stream in STREAMS if partitions else ():
            order = Order(settings=grown, topology=ALL, run_id="r")
            made = rescale(order, stream, spark, partitions)
            assert sum(entries for entries, _ in made.state.values()) > 0

    expected = rows_in(one)
    assert all(expected.values())
    assert rows_in(grown) == expected
