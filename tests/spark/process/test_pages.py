"""State of a process function in pages: taken over from a release without, exact over a kill."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from rivermark.model.errors import StreamFailed
from rivermark.process.spark import build, run_process
from rivermark.process.spark.core import Core
from rivermark.process.spark.stateful import PAGES, STATE, STATE_SCHEMA, BucketProcessor
from rivermark.runtime.checkpoint.state_reader import state_of_stream
from rivermark.settings import Settings
from tests.spark.helpers.crashes import crash_once, forget_last_commit
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READINGS, TEN, reading, run
from tests.spark.process.rules import JUMPS, SILENCE, SILENCES, Watched, watched
from tests.spark.process.test_modes import by_hand, written

pytestmark = pytest.mark.spark

IN_PAGES = watched(build=run_process(Watched, buckets=1))
SENSORS = 200


class OfEarlierRelease(BucketProcessor):
    """Declares the one state that it had."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState(STATE, STATE_SCHEMA)


def sweep(landing: Landing, number: int, minute: float, sensors: range) -> None:
    """A reading of each of the sensors, and what moves the watermark past them."""
    lines = [reading(minute, f"s{n}", 20 + (n + number) % 3 * 40) for n in sensors]
    landing.put(f"{FOLDER}/{number}.json", *lines, reading(minute + 2, "clock"))


def paged(patch: pytest.MonkeyPatch, page_from: int = 1) -> None:
    core: Callable[..., Any] = partial(Core, page_from=page_from)
    patch.setattr(build, "Core", core)


@pytest.mark.long
def test_state_of_an_earlier_release_goes_on_in_pages_and_a_kill_leaves_it_exact(
    spark: SparkSession, settings: Settings, landing: Landing, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep(landing, 1, 0, range(SENSORS))
    with monkeypatch.context() as patch:
        paged(patch, 1_000_000)
        patch.setattr(build, "BucketProcessor", OfEarlierRelease)
        run(spark, settings, READINGS, IN_PAGES)
    paged(monkeypatch)
    for number in range(2, 6):
        sweep(landing, number, number * 1.5, range(number, number + 2))
        run(spark, settings, READINGS)
        if number == 4:
            with monkeypatch.context() as patch:
                crash_once(patch, JUMPS.name)
                with pytest.raises(StreamFailed, match="crashed at test/jumps"):
                    run(spark, settings, IN_PAGES)
        run(spark, settings, IN_PAGES)
    forget_last_commit(settings, IN_PAGES)
    run(spark, settings, IN_PAGES)

    checkpoint = settings.lake().checkpoint(IN_PAGES.name, 0)
    stored = spark.read.format("statestore").option("stateVarName", PAGES).load(checkpoint)
    assert stored.count() == 1
    view = state_of_stream(spark, settings.lake(), IN_PAGES, "s6", 10)
    (only,) = view.keys
    last = TEN + timedelta(minutes=7.5)
    assert only.states["last"]["at"] == int(last.timestamp() * 1000)
    assert only.timers == {"event": [last + SILENCE], "processing": []}
    assert view.buckets[0].keys == SENSORS + 1

    landing.put(f"{FOLDER}/end.json", reading(600, "end"), reading(602, "end"))
    run(spark, settings, READINGS, IN_PAGES)
    jumps, silences = by_hand(spark, settings)
    rows = written(spark, settings)
    assert jumps
    assert rows[JUMPS.name] == jumps
    assert rows[SILENCES.name] == silences
    assert state_of_stream(spark, settings.lake(), IN_PAGES, None, 99).keys[0].key == "end"
