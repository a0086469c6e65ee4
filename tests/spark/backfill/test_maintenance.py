"""Streams read on through compaction, vacuum and a shorter log, and give the same rows."""

from __future__ import annotations

import random
import threading
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import cast

import pytest
from pyspark.sql import SparkSession

from rivermark import Topology
from rivermark.backfill.maintenance import upkeep
from rivermark.lake.log import CommitLog
from rivermark.lake.maintenance.maintain import MaintenanceResult
from rivermark.lake.snapshot import row_count
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.checkpoint.readers import readers_of
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.background import running
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    FOLDER,
    READINGS,
    busiest,
    one_file_a_batch,
    ordered,
    reading,
    rows,
    run,
    windows,
)
from tests.spark.runtime.query.test_append import busiest_of, final_windows

pytestmark = pytest.mark.spark

WINDOWS = windows()
SECOND = timedelta(seconds=1) / timedelta(days=1)


def land(landing: Landing, first: int, last: int) -> None:
    """Files of a minute each, in disorder within a minute's lateness."""
    chance = random.Random(first)
    for minute in range(first, last):
        moments = [minute + chance.uniform(-0.9, 0) for _ in range(3)] + [minute]
        lines = [reading(max(0, m), f"s{n % 2}") for n, m in enumerate(moments)]
        landing.put(f"{FOLDER}/{minute:03}.json", *lines)


def look_after(settings: Settings, topology: Topology) -> dict[str, MaintenanceResult]:
    return {k.table: k for k in upkeep(settings, topology, run_id="upkeep")}


@pytest.mark.long
def test_live_streams_go_on_through_upkeep_and_late_starters_see_every_row(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings.model_copy(update={"promise_days": SECOND, "files_per_trigger": 1})
    ingest = one_file_a_batch(monkeypatch, READINGS)[0]
    streams = (ingest, WINDOWS)
    topology, lake = Topology(streams), settings.lake()

    def host(stop: threading.Event) -> object:
        return run_continuous(spark, settings, topology, streams, run_id="live", stop=stop)

    def read_all(files: int) -> bool:
        admitted = row_count(lake, ingest.admitted) if lake.exists(ingest.admitted) else 0
        newest = (CommitLog(lake.path(ingest.admitted)).versions() or [0])[-1]
        places = readers_of(lake, topology, ingest.admitted) if admitted else []
        return admitted >= 4 * files and bool(places) and places[0].version >= newest

    with running(host) as live:
        for part in (1, 2):
            land(landing, 9 * (part - 1), 9 * part)
            wait_until(partial(read_all, 9 * part), reason="all rows are read", alive=live.alive)
            time.sleep(1.2)
            done = look_after(settings, topology)
            assert live.alive()
    summaries = cast(dict[str, StreamSummary], live.result)

    admitted = done[ingest.admitted.name]
    assert admitted.deleted_files > 0
    assert admitted.after.files < 18
    assert CommitLog(lake.path(ingest.admitted)).versions()[0] > 0
    assert summaries["test/windows"].dropped_by_watermark == 0
    land(landing, 18, 22)
    run(spark, settings, *streams)
    readings = rows(spark, settings, READINGS.admitted)
    assert len(readings) == 4 * 22
    found = ordered(rows(spark, settings, WINDOWS.tables[0]))
    assert found == final_windows(readings)

    late = replace(WINDOWS, name="test/late", writes=replace(WINDOWS.tables[0], name="test/late"))
    best = busiest(WINDOWS)
    later = run(spark, settings, late, best)
    assert {s.dropped_by_watermark for s in later.values()} == {0}
    assert ordered(rows(spark, settings, late.tables[0])) == found
    per_window = rows(spark, settings, WINDOWS.tables[0])
    seen = rows(spark, settings, best.tables[0])
    newest = max(r["window_end"] for r in seen)
    before = [r for r in per_window if r["window_end"] <= newest]
    assert ordered(seen) == busiest_of(before)


@pytest.mark.long
def test_a_stream_that_lags_for_longer_than_the_promise_loses_nothing(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings.model_copy(update={"promise_days": SECOND})
    ingest = one_file_a_batch(monkeypatch, READINGS)[0]
    topology = Topology((ingest, WINDOWS))
    land(landing, 0, 3)
    run(spark, settings, ingest, WINDOWS)
    land(landing, 3, 16)
    run(spark, settings, ingest)
    for _ in range(2):
        time.sleep(1.2)
        held = look_after(settings, topology)[ingest.admitted.name]
    assert (held.deleted_files, held.deleted_log_entries) == (0, 0)
    assert any("test/windows" in note for note in held.notes)

    summary = run(spark, settings, WINDOWS)["test/windows"]

    assert summary.dropped_by_watermark == 0
    readings = rows(spark, settings, READINGS.admitted)
    assert ordered(rows(spark, settings, WINDOWS.tables[0])) == final_windows(readings)
    caught_up = look_after(settings, topology)[ingest.admitted.name]
    assert caught_up.joined_files == 16


@pytest.mark.long
@pytest.mark.parametrize(
    ("batches", "promise_days", "nights"),
    [(4, 7.0, 16), (9, 7.0, 16), (4, SECOND, 3), (1, SECOND, 3)],
)
def test_n055_streams_that_rested_through_quiet_nights_start_again(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    monkeypatch: pytest.MonkeyPatch,
    batches: int,
    promise_days: float,
    nights: int,
) -> None:
    """All was read. At a start Spark goes through the last finished batch once more."""
    settings = settings.model_copy(update={"promise_days": promise_days, "files_per_trigger": 1})
    ingest = one_file_a_batch(monkeypatch, READINGS)[0]
    hours = replace(WINDOWS.tables[0], name="test/hours")
    hourly = windows(name="test/hours", minutes=60, kind="refresh", writes=hours)
    streams = (ingest, WINDOWS, busiest(WINDOWS), hourly)
    topology, lake = Topology(streams), settings.lake()
    land(landing, 0, batches)
    run(spark, settings, *streams)

    for night in range(1, nights + 1):
        if promise_days == SECOND:
            time.sleep(1.2)
        quiet = timedelta(days=night if promise_days > 1 else 0)
        done = upkeep(settings, topology, run_id="upkeep", now=datetime.now(UTC) + quiet)
        assert [kept.table for kept in done if kept.failed or kept.notes] == []
    land(landing, batches, batches + 6)
    summaries = run(spark, settings, *streams)

    assert {s.dropped_by_watermark for s in summaries.values()} == {0}
    found = rows(spark, settings, READINGS.admitted)
    assert len(found) == 4 * (batches + 6)
    assert ordered(rows(spark, settings, WINDOWS.tables[0])) == final_windows(found)
    assert sum(row["readings"] for row in rows(spark, settings, hours)) == len(found)
    assert CommitLog(lake.path(hours)).versions()[0] > 0, "no stream reads it: its log was cut"
