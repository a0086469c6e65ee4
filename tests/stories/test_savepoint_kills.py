"""kill -9 before every step of take, resume, fork and promote, and of the live run between them.

What is expected is what the same streams make of the same files in a home without any savepoint.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark.model.stream import AnyStream
from rivermark.runtime.checkpoint.watermarks import last_reached
from rivermark.runtime.savepoint.fork import forked, forks, with_forks
from rivermark.runtime.savepoint.store import savepoints
from rivermark.runtime.spark.session import open_session
from rivermark.runtime.supervision.heartbeat import HeartbeatStore
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.savepoint_world import (
    ALL,
    DISTINCT,
    READINGS,
    SESSIONS,
    STREAMS,
    WINDOWS,
    land,
    rows_in,
)
from tests.stories.deployment import ROOT

pytestmark = [pytest.mark.story, pytest.mark.slow]


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    session = open_session(Settings(home=tmp_path / "engine"), kind="long")
    yield session
    session.stop()


def start(home: Path, verb: str, name: str = "", step: int = 0) -> subprocess.Popen[bytes]:
    """The helper's console, as the first of a group of processes."""
    module = "tests.spark.helpers.savepoint_world"
    command = [sys.executable, "-m", module, str(home), verb, name, str(step)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)


def killed_at_each_step(home: Path, verb: str, name: str = "") -> int:
    """Do something, killed before each of its steps in turn and called again; the kills."""
    kills = 0
    while (code := start(home, verb, name, kills + 1).wait(240)) == -signal.SIGKILL:
        kills += 1
    assert code == 0
    return kills


def drain(spark: SparkSession, settings: Settings, *streams: AnyStream) -> None:
    """Drain the streams as a process that has opened no table before."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    topology = with_forks(settings.lake(), ALL)
    run_bounded(spark, settings, topology, streams or STREAMS, run_id="r")


@pytest.mark.timeout(1800)
def test_kills_at_every_step_change_no_row(tmp_path: Path, spark: SparkSession) -> None:
    oracle = Settings(home=tmp_path / "oracle", trigger_seconds=0.1)
    for part in range(4):
        land(Landing(Path(oracle.landing_root)), part)
        drain(spark, oracle)
    settings = Settings(home=tmp_path / "home", trigger_seconds=0.1)
    home, lake, landing = settings.home, settings.lake(), Landing(Path(settings.landing_root))
    kills = 0

    land(landing, 0)
    live = start(home, "live")
    try:
        done = [WINDOWS, SESSIONS]
        wait_until(lambda: all(last_reached(lake, s) for s in done), 240, reason="it runs")
        for stream in STREAMS:
            kills += killed_at_each_step(home, "take", stream.name)
        land(landing, 1)
        before = last_reached(lake, SESSIONS)
        wait_until(lambda: last_reached(lake, SESSIONS) != before, 240, reason="it goes on")
    finally:
        os.killpg(live.pid, signal.SIGKILL)
        live.wait()
    assert all(len(savepoints(lake, stream.name)) == 1 for stream in STREAMS)

    for stream in reversed(STREAMS):
        kills += killed_at_each_step(home, "resume", stream.name)
    drain(spark, settings)

    live = start(home, "live")
    try:
        beats = HeartbeatStore(settings.state)
        wait_until(
            lambda: (beat := beats.get(WINDOWS.name)) is not None and beat.state == "running",
            240,
            reason="it runs again",
        )
        kills += killed_at_each_step(home, "stop", WINDOWS.name)
        assert live.wait(120) == 0
    finally:
        if live.poll() is None:
            os.killpg(live.pid, signal.SIGKILL)
            live.wait()
    land(landing, 2)
    drain(spark, settings)
    kills += killed_at_each_step(home, "fork", WINDOWS.name)
    land(landing, 3)
    drain(spark, settings, READINGS, DISTINCT, forked(WINDOWS, "twin"))
    kills += killed_at_each_step(home, "promote")
    drain(spark, settings)

    print(f"{kills} kills")  # noqa: T201 - for the report of the story
    assert kills >= 30
    assert not forks(lake)
    assert rows_in(settings) == rows_in(oracle)
