"""Hosting streams until they are stopped; the runs themselves are played."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from rivermark import AnyStream, Topology
from rivermark.runtime.supervision import hosting as module
from rivermark.runtime.supervision import run as runs
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.hosting import Hosting, stop_on_signals
from rivermark.settings import Settings
from rivermark.sources import KafkaSource
from tests.unit.model.test_topology import BEST, CLEAN, HOURS, RIDES
from tests.unit.sinks.test_real_time import stream as real_time_stream

DEADLINE_SECONDS = 10
SPARK = cast(SparkSession, object())


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path)


@pytest.fixture
def hosted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[threading.Event], object]], Any]:
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.05)

    def play(body: Callable[[threading.Event], object]) -> list[str]:
        played = []
        for name in ("run_bounded", "run_continuous"):

            def run(*_: Any, stop: threading.Event, name: str = name, **__: Any) -> object:
                played.append(name)
                return body(stop)

            monkeypatch.setattr(runs, name, run)
        return played

    return play


def test_queries_in_real_time_take_a_slot_for_each_partition(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KafkaSource, "partition_count", lambda _: 3)
    declared = real_time_stream()
    streams: list[AnyStream] = [RIDES, declared, replace(declared, name="test/more")]
    hosted = Hosting(
        settings=settings, topology=Topology([]), streams=streams, run_id="r", continuous=True
    )
    assert hosted.real_time_slots() == 6
    assert replace(hosted, streams=[RIDES]).real_time_slots() == 0


def hosting(settings: Settings, *, continuous: bool) -> Hosting:
    topology = Topology([BEST, HOURS, CLEAN, RIDES])
    return Hosting(
        settings=settings,
        topology=topology,
        streams=[HOURS, CLEAN],
        run_id="run",
        continuous=continuous,
    )


def test_a_live_run_stops_when_its_group_is_paused(settings: Settings, hosted: Any) -> None:
    store = DesiredStore(settings.state)
    pauses: list[tuple[str, str]] = []

    def pause(stop: threading.Event) -> None:
        store.set("other", "paused", by="ada", reason="not a group of this run")
        assert not stop.wait(0.5)
        store.set("test", "paused", by="ada", reason="enough")
        assert stop.wait(DEADLINE_SECONDS)

    played = hosted(pause)
    store.set("test", "run", by="ada", reason="")
    hosting(settings, continuous=True).run(
        SPARK,
        threading.Event(),
        on_pause=lambda group, desired: pauses.append((group, desired.reason)),
    )

    assert played == ["run_continuous"]
    assert pauses == [("test", "enough")]


@pytest.mark.parametrize("state", ["paused", "unreadable"])
def test_a_pause_from_before_the_run_or_one_that_cannot_be_read_does_not_stop_it(
    settings: Settings, hosted: Any, state: str
) -> None:
    DesiredStore(settings.state).set("test", "paused", by="ada", reason="yesterday")
    since = datetime.now(UTC)
    if state == "unreadable":
        (settings.state / "desired" / "test.json").write_text("{")

    hosted(lambda stop: [pytest.fail("stopped")] if stop.wait(0.5) else None)
    hosting(settings, continuous=True).run(
        SPARK, threading.Event(), paused_since=since if state == "paused" else None
    )


def test_a_bounded_run_drains_a_group_that_is_paused(settings: Settings, hosted: Any) -> None:
    DesiredStore(settings.state).set("test", "paused", by="ada", reason="yesterday")

    played = hosted(lambda _: None)
    hosting(settings, continuous=False).run(SPARK, threading.Event())

    assert played == ["run_bounded"]


def test_a_signal_asks_for_a_stop_and_a_second_one_interrupts() -> None:
    handlers = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)]

    with stop_on_signals(ZeroDivisionError) as stop:
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
        assert stop.signalled
        with pytest.raises(ZeroDivisionError):
            signal.raise_signal(signal.SIGINT)

    assert [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_a_stop_by_a_pause_is_no_signal() -> None:
    with stop_on_signals() as stop:
        stop.set()
        assert not stop.signalled
