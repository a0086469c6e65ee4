"""M014: streams go on exactly once behind an erasure, and days downstream follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark import Daily, Stream, Table, Topology
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.erasure.erase import Erasure, erase
from rivermark.backfill.erasure.person import person_of
from rivermark.backfill.late.run import merge_late
from rivermark.backfill.maintenance import upkeep
from rivermark.backfill.pending import pending_days
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.monitor.fsck import fsck
from rivermark.runtime.supervision.reset import reset
from rivermark.settings import Settings
from tests.kills import Killer
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    FIRST_DAY,
    FOLDER,
    TEN,
    reading,
    readings,
    rows,
    run,
    windows,
)

pytestmark = pytest.mark.spark

SENSED = readings(personal=("note", "sensor"))
HOT = Stream(
    reads=(SENSED,),
    build=lambda rows: rows.select("sensor", "at", "temperature", "note"),
    writes=Table(
        name="test/hot",
        schema="sensor string, at timestamp, temperature decimal(9,3), note string",
        description="Readings with their notes.",
        event_time="at",
        keys=("sensor", "at"),
        days=Daily("at", FIRST_DAY),
        personal=("sensor", "note"),
    ),
    group="test",
    volume="events",
)


WINDOWS = windows(SENSED)
STREAMS: Sequence[AnyStream] = (SENSED, WINDOWS, HOT)
TOPOLOGY = Topology(STREAMS)


def erased(settings: Settings, *given: str, dry_run: bool = False) -> Erasure:
    return erase(settings, TOPOLOGY, person_of(TOPOLOGY, given), run_id="e", dry_run=dry_run)


def land(landing: Landing, name: str, first: int, minutes: int) -> None:
    sensors = ("s1", "s2", "s3")
    lines = [reading(m, s, note=f"of {s}") for m in range(first, first + minutes) for s in sensors]
    landing.put(f"{FOLDER}/{name}.json", *lines, reading(first, "s1", "broken"))


def all_checks_pass(settings: Settings) -> None:
    for stream in STREAMS:
        for check in checks_of_stream(stream):
            # Five of a hundred rows of this world are quarantined on purpose.
            if check.name in ("every_row_is_accounted_for", "rows_are_unique"):
                result = check.evaluate(settings, TEN)
                assert result.passed, f"{check.table.name}: {result.observed}"
    assert fsck(settings, TOPOLOGY).faults == []


def test_m014_streams_go_on_behind_an_erasure(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    land(landing, "1", 0, 10)
    run(spark, settings, *STREAMS)
    land(landing, "2", 10, 10)
    run(spark, settings, SENSED)
    with pytest.raises(RivermarkError, match="has not read all rows of 'test/readings' yet"):
        erased(settings, "sensor=s1")
    run(spark, settings, *STREAMS)
    seen = {each.place: each.rows for each in erased(settings, "sensor=s1", dry_run=True).places}

    killer = Killer()
    killer.before("rivermark.lake.erasure.DeltaCommitter.replace_files")
    with killer.patch.context():
        assert killer.kills(2, lambda: erased(settings, "sensor=s1"))
    killer.patch.undo()
    done = erased(settings, "sensor=s1")

    assert seen == {
        "test/hot": 20,
        "test/readings": 20,
        "test/readings_quarantine": 2,
        "test/readings_raw": 22,
        "test/windows": 3,
    }
    assert [text for text in done.left if text.startswith("state of 'test/windows'")]
    all_checks_pass(settings)
    land(landing, "3", 20, 20)
    run(spark, settings, *STREAMS)
    all_checks_pass(settings)
    hot = [(r["sensor"], r["at"]) for r in rows(spark, settings, HOT.tables[0], "sensor", "at")]
    assert len(hot) == 2 * 40 + 20
    assert len(set(hot)) == len(hot)
    of_two = [r for r in rows(spark, settings, WINDOWS.tables[0]) if r["sensor"] == "s2"]
    assert [r["readings"] for r in of_two] == [5] * 7
    # What a day's recompute gives is what is there, but for what state remembered.
    context = BackfillContext(settings=settings, topology=TOPOLOGY, spark=lambda: spark, run_id="m")
    merge_late(context, [SENSED], first=None, last=None)
    assert [r for r in rows(spark, settings, WINDOWS.tables[0]) if r["sensor"] == "s2"] == of_two


def test_m014_state_that_remembers_goes_with_a_reset(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    land(landing, "1", 0, 18)
    run(spark, settings, *STREAMS)
    done = erased(settings, "sensor=s1", "note=of s1")
    assert any("rivermark reset test/windows" in text for text in done.left)
    reset(settings, TOPOLOGY, WINDOWS, run_id="r")
    again = erased(settings, "sensor=s1", "note=of s1")
    assert not any("state of 'test/windows'" in text for text in again.left)
    assert any(text.startswith("log of 'test/readings'") for text in done.left)
    for number in (2, 3):
        landing.put(f"{FOLDER}/{number}.json", reading(57 + number, "s2"))
        run(spark, settings, *STREAMS)
    upkeep(settings, TOPOLOGY, run_id="u")

    found = {r["sensor"] for r in rows(spark, settings, WINDOWS.tables[0], "sensor")}
    assert found == {"s2", "s3"}
    root = Path(settings.lake().root)
    texts = [
        p for p in root.rglob("*.json") if '"s1' in p.read_text() and "checkpoint" not in str(p)
    ]
    assert texts == []
    assert set(pending_days(settings.lake(), TOPOLOGY)) == {"test/windows", "test/hot"}
