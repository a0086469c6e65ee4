"""Savepoints of streams that keep state: gone back to, forked, promoted, killed at each step.

What is expected is what the same streams make of the same files in a home without any savepoint.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Stream
from rivermark.backfill.fork_comparison import compare_fork
from rivermark.backfill.maintenance import upkeep
from rivermark.model.errors import CheckpointIncompatible, RivermarkError, StreamFailed
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.monitor.savepoints import verify
from rivermark.runtime.savepoint.fork import drop, fork, forked, forks, promote, with_forks
from rivermark.runtime.savepoint.manifest import Manifest
from rivermark.runtime.savepoint.resume import Order, resume
from rivermark.runtime.savepoint.store import delete, savepoints, take
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from tests.kills import Killed
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

pytestmark = pytest.mark.spark


def run(spark: SparkSession, settings: Settings, *streams: AnyStream) -> None:
    """Drain the streams, as a process of their own would that has opened no table before."""
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    topology = with_forks(settings.lake(), ALL)
    run_bounded(spark, settings, topology, streams or STREAMS, run_id="r")


@pytest.fixture
def expected(spark: SparkSession, tmp_path: Path) -> dict[str, list[Any]]:
    other = Settings(home=tmp_path / "oracle", trigger_seconds=0.1)
    for part in range(3):
        land(Landing(Path(other.landing_root)), part)
        run(spark, other)
    return rows_in(other)


def at_each_step(act: Callable[[Callable[[str], None]], object]) -> list[str]:
    """Let an action be killed before each of its steps in turn, then finish it; its steps."""
    seen: list[str] = []
    while True:
        passed: list[str] = []

        def on_step(step: str, passed: list[str] = passed) -> None:
            passed.append(step)
            if step not in seen:
                seen.append(step)
                raise Killed

        try:
            act(on_step)
        except Killed:
            continue
        return seen


def order(settings: Settings, topology: Topology = ALL, **more: Any) -> Order:
    return Order(settings=settings, topology=topology, run_id="r", **more)


def took(settings: Settings, *streams: AnyStream) -> dict[str, Manifest]:
    return {stream.name: take(settings, stream) for stream in streams}


def test_all_go_back_together_and_every_row_is_there_once(
    spark: SparkSession, settings: Settings, landing: Landing, expected: dict[str, list[Any]]
) -> None:
    land(landing, 0)
    run(spark, settings)
    made = took(settings, *STREAMS)
    land(landing, 1)
    run(spark, settings)
    assert {name: verify(settings, ALL.named(name), m.id) for name, m in made.items()} == {
        name: [] for name in made
    }

    for stream in reversed(STREAMS):
        steps = at_each_step(
            lambda step, s=stream: resume(order(settings, on_step=step), s, made[s.name].id)  # type: ignore[misc]
        )
        assert len(steps) > 5
    land(landing, 2)
    run(spark, settings)

    assert rows_in(settings) == expected


def test_a_reader_that_has_read_further_is_named_and_starts_over_if_that_is_said(
    spark: SparkSession, settings: Settings, landing: Landing, expected: dict[str, list[Any]]
) -> None:
    land(landing, 0)
    run(spark, settings)
    made = take(settings, DISTINCT)
    land(landing, 1)
    run(spark, settings)

    with pytest.raises(RivermarkError, match="'test/windows' has read rows of 'test/distinct'"):
        resume(order(settings), DISTINCT, made.id)
    resume(order(settings, reset_readers=True), DISTINCT, made.id)
    land(landing, 2)
    run(spark, settings)

    assert rows_in(settings) == expected


def test_a_stream_that_goes_back_by_half_does_not_start(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    land(landing, 0)
    run(spark, settings, READINGS, SESSIONS)
    made = take(settings, SESSIONS)

    def killed(step: str) -> None:
        if step.startswith("moving"):
            raise Killed

    with pytest.raises(Killed):
        resume(order(settings, on_step=killed), SESSIONS, made.id)
    with pytest.raises(Exception, match="rivermark savepoint resume test/sessions"):
        run(spark, settings, SESSIONS)
    resume(order(settings), SESSIONS, made.id)
    run(spark, settings, SESSIONS)


@pytest.mark.parametrize("stream", [WINDOWS, SESSIONS], ids=["build", "process"])
def test_a_fork_is_compared_and_promoted_with_every_row_once(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    expected: dict[str, list[Any]],
    stream: Stream,
) -> None:
    land(landing, 0)
    run(spark, settings)
    made = take(settings, stream)
    land(landing, 1)
    run(spark, settings)
    before = rows_in(settings)

    at_each_step(lambda step: fork(order(settings, on_step=step), stream, "twin", made.id))
    twin = forked(stream, "twin")
    run(spark, settings, twin)
    assert rows_in(settings) == before
    assert rows_in(settings, twin)[twin.tables[0].name] == before[stream.tables[0].name]
    (difference,) = compare_fork(settings, ALL, "twin", date(2024, 3, 1)).values()
    assert difference.same
    assert difference.unchanged

    land(landing, 2)
    run(spark, settings, READINGS, DISTINCT, twin)
    at_each_step(lambda step: promote(order(settings, on_step=step), "twin"))

    assert not forks(settings.lake())
    assert not settings.lake().exists(twin.tables[0])
    run(spark, settings)
    assert rows_in(settings) == expected


def test_a_fork_of_changed_code_differs_by_what_was_changed_alone(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    land(landing, 0)
    run(spark, settings)
    made = take(settings, WINDOWS)
    land(landing, 1)
    run(spark, settings)

    def doubled(rows: DataFrame) -> DataFrame:
        return WINDOWS.build(rows).withColumn("readings", F.col("readings") * 2)

    changed = replace(WINDOWS, build=doubled)
    later = Topology([READINGS, DISTINCT, changed])
    fork(order(settings, topology=later), changed, "twin", made.id)
    twin = forked(changed, "twin")
    with pytest.raises(StreamFailed, match="was made by another declaration"):
        run_bounded(spark, settings, with_forks(settings.lake(), later), [twin], run_id="r")
    drop(order(settings, topology=later), "twin")
    fork(order(settings, topology=later), changed, "twin", made.id, accept=True)
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.clearCache()  # type: ignore[union-attr]
    run_bounded(spark, settings, with_forks(settings.lake(), later), [twin], run_id="r")

    (difference,) = compare_fork(settings, later, "twin", date(2024, 3, 1)).values()
    assert (difference.added, difference.removed) == (0, 0)
    assert dict(difference.columns) == {"readings": difference.changed}
    assert difference.changed
    assert difference.unchanged, "rows of before the savepoint are as they were"


def test_savepoints_go_by_the_rule_and_never_the_newest_or_one_in_use(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    settings = settings.model_copy(update={"savepoints_kept": 1})
    land(landing, 0)
    run(spark, settings, READINGS, SESSIONS)
    first, second, third = (take(settings, SESSIONS) for _ in range(3))
    lake = settings.lake()

    with pytest.raises(RivermarkError, match="newest restore point"):
        delete(lake, SESSIONS.name, third.id, lambda _: "")
    fork(order(settings), SESSIONS, "twin", first.id)
    upkeep(settings, ALL, run_id="r", dry_run=True)
    assert len(savepoints(lake, SESSIONS.name)) == 3
    upkeep(settings, ALL, run_id="r")
    assert {each.id for each in savepoints(lake, SESSIONS.name)} == {first.id, third.id}
    assert second.id != third.id


def test_damage_of_a_savepoint_is_named(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    land(landing, 0)
    run(spark, settings, READINGS, SESSIONS)
    made = take(settings, SESSIONS)
    folder = Path(settings.lake().root) / "savepoints" / SESSIONS.name / made.id
    (folder / "checkpoints" / SESSIONS.name / "0000" / "commits" / str(made.batch)).unlink()

    assert verify(settings, SESSIONS, made.id)
    (folder / "manifest.json").write_text((folder / "manifest.json").read_text().replace("0", "1"))
    with pytest.raises(CheckpointIncompatible):
        savepoints(settings.lake(), SESSIONS.name)
