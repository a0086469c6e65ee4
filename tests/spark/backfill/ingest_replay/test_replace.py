"""A replay put in the place of what was admitted: as if the rules of now had been those of then."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermark import Ingest, Rule, Stream, Table, Topology
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.ingest_replay import decisions, in_place
from rivermark.backfill.ingest_replay.run import IngestReplay, replay_ingest
from rivermark.backfill.ingest_replay.undo import undo_replacement
from rivermark.backfill.late.run import merge_late
from rivermark.backfill.registry import newest_records
from rivermark.ingest import admission
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.model.errors import RivermarkError, WrongUse
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.settings import Settings
from tests.spark.helpers.crashes import CrashError
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    FOLDER,
    MINUTE,
    READING,
    READINGS,
    ordered,
    reading,
    readings,
    rows,
    run,
    windows,
)

pytestmark = pytest.mark.spark

DAY = date(2024, 3, 1)
WINDOWS = windows()
LATER = readings(
    max_files=1,
    lateness=2 * MINUTE,
    rules=(
        Rule("warm", "temperature > 50", "quarantine", "Above 50 degrees."),
        Rule("freezing", "temperature < 5", "flag", "Below five."),
    ),
)
"""The rules of now: some rows move each way, and one has another flag."""
THEN = replace(READINGS, source=replace(READINGS.source, max_files=1))
DECIDED = (THEN.admitted, THEN.late, THEN.quarantine)
LEDGER = ("file", "rows", "admitted", "late", "quarantined", "status", "replaced")


def land(landing: Landing) -> None:
    landing.put(f"{FOLDER}/1.json", reading(4), reading(1, "s2", 60), reading(2, "s3", 2000), "{")
    landing.put(f"{FOLDER}/2.json", reading(5, "s1", 3), reading(0.5, "s2"), reading(2.5, "s3"))
    landing.put(f"{FOLDER}/3.json", reading(6, "s4"), reading(60 * 24 * 2, "s5"))
    landing.put(f"{FOLDER}/4.json", reading(60 * 24 * 2 + 1, "s'6", 70))


def context_of(
    spark: SparkSession, settings: Settings, ingest: Ingest = LATER, *streams: Stream
) -> BackfillContext:
    return BackfillContext(
        settings=settings,
        topology=Topology([ingest, *(streams or (windows(ingest),))]),
        spark=lambda: spark,
        run_id="again",
    )


def put(spark: SparkSession, settings: Settings) -> IngestReplay:
    return replay_ingest(
        context_of(spark, settings), LATER.name, DAY, date(2024, 3, 3), replacing=True
    )


def state(spark: SparkSession, settings: Settings) -> dict[str, list[tuple[object, ...]]]:
    """All that is decided, but for when it was."""

    def of(table: Table, *left_out: str) -> list[tuple[object, ...]]:
        names = [n for n in table.schema.fieldNames() if n not in ("_ingested_at", *left_out)]
        return ordered(rows(spark, settings, table, *names))

    tables = {table.name: of(table) for table in (*DECIDED, *WINDOWS.tables)}
    tables["ledger"] = ordered(rows(spark, settings, INGEST_FILES, *LEDGER))
    return tables


@pytest.fixture
def oracle(spark: SparkSession, tmp_path: Path) -> dict[str, list[tuple[object, ...]]]:
    """The tables of a lake in which the rules of now were those of then."""
    settings = Settings(home=tmp_path / "oracle", trigger_seconds=0.1)
    land(Landing(Path(settings.landing_root)))
    run(spark, settings, LATER, windows(LATER))
    return state(spark, settings)


@pytest.mark.long
def test_replaced_and_undone_as_if_the_rules_had_been_others_and_never_were(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    oracle: dict[str, list[tuple[object, ...]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    land(landing)
    run(spark, settings, THEN, WINDOWS)
    before = state(spark, settings)
    assert before != oracle

    # Killed after each of its steps, it is finished by the same order.
    for steps in (0, 1, 1, 1):
        with monkeypatch.context() as patch:
            killed_after(patch, steps)
            with pytest.raises(CrashError):
                put(spark, settings)
    for step in ("register", "recompute_downstream"):
        with monkeypatch.context() as patch:
            patch.setattr(in_place, step, crash)
            with pytest.raises(CrashError):
                put(spark, settings)
    report = put(spark, settings)

    assert state(spark, settings) == oracle
    assert rows_accounted_for(settings, LATER).passed
    made = {r.id for r in newest_records(settings.lake(), THEN.name)}
    assert len(made) == 1
    assert put(spark, settings).changes.rows == 0

    (name,) = made
    with monkeypatch.context() as patch:
        killed_after(patch, 2)
        with pytest.raises(CrashError):
            undo_replacement(context_of(spark, settings, THEN, WINDOWS), THEN, name)
    undone, _ = undo_replacement(context_of(spark, settings, THEN, WINDOWS), THEN, name)
    assert undone is not None
    assert undone.because == name
    assert state(spark, settings) == before
    assert rows_accounted_for(settings, THEN).passed
    with pytest.raises(RivermarkError, match="was undone already"):
        undo_replacement(context_of(spark, settings, THEN, WINDOWS), THEN, name)
    assert report.replayed.files == 4


def killed_after(patch: pytest.MonkeyPatch, tables: int) -> None:
    """Let a replacement end after so many of its tables, the ledger being the last one."""
    replace_rows = in_place.replace_rows
    left = iter([replace_rows] * tables)

    def crashing(*args: Any) -> None:
        next(left, crash)(*args)

    patch.setattr(in_place, "replace_rows", crashing)


def crash(*_: object, **__: object) -> None:
    raise CrashError("killed")


def test_what_is_large_is_decided_and_replaced_by_tasks_alike(
    spark: SparkSession,
    settings: Settings,
    landing: Landing,
    oracle: dict[str, list[tuple[object, ...]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    land(landing)
    run(spark, settings, THEN, WINDOWS)
    before = state(spark, settings)
    with monkeypatch.context() as patch:
        patch.setattr(decisions, "DRIVER_BYTES", 0)
        patch.setattr(admission, "DRIVER_BYTES", 0)
        report = put(spark, settings)
        assert state(spark, settings) == oracle
        assert report.done is not None
        undo_replacement(context_of(spark, settings, THEN, WINDOWS), THEN, report.done.id)
    assert state(spark, settings) == before


def test_late_rows_that_were_merged_stay_merged(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    land(landing)
    landing.put(f"{FOLDER}/5.json", reading(60 * 24 * 4))
    run(spark, settings, THEN, WINDOWS)
    merge_late(context_of(spark, settings, THEN, WINDOWS), [THEN])
    late = rows(spark, settings, THEN.late, "_file", "_row")
    assert len(late) == 2

    colder = readings(max_files=1, rules=(replace(READING.rules[1], broken="temperature < 21"),))
    report = replay_ingest(
        context_of(spark, settings, colder), colder.name, DAY, DAY, replacing=True
    )

    assert report.changes.rows
    assert rows(spark, settings, THEN.late, "_file", "_row") == late
    admitted = rows(spark, settings, THEN.admitted, "_file", "_row", "flags")
    flags = {(row["_file"], row["_row"]): row["flags"] for row in admitted}
    assert [flags[tuple(row)] for row in late] == [["freezing"], ["freezing"]]
    assert rows_accounted_for(settings, colder).passed
    merged = merge_late(context_of(spark, settings, colder), [colder])
    assert merged.rows == 0


def test_a_row_that_is_late_by_the_rules_of_now_is_merged_later(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    land(landing)
    landing.put(f"{FOLDER}/5.json", reading(60 * 24 * 4))
    loose = readings(max_files=1, lateness=60 * MINUTE)
    run(spark, settings, loose)
    merge_late(context_of(spark, settings, loose), [loose])
    total = len(rows(spark, settings, THEN.admitted))

    replay_ingest(context_of(spark, settings, THEN), THEN.name, DAY, DAY, replacing=True)
    assert len(rows(spark, settings, THEN.admitted)) == total - 2
    assert len(rows(spark, settings, THEN.late)) == 2
    assert merge_late(context_of(spark, settings, THEN), [THEN]).rows == 2


def test_a_replacement_is_by_what_is_declared(spark: SparkSession, settings: Settings) -> None:
    with pytest.raises(WrongUse, match="declare that lateness first"):
        replay_ingest(
            context_of(spark, settings), LATER.name, DAY, DAY, lateness_seconds=5, replacing=True
        )
