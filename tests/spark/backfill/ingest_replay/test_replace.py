"""A replay put in the place of what was admitted, by Spark's tasks, and what follows from it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark import Ingest, Rule, Table, Topology
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.ingest_replay import scope
from rivermark.backfill.ingest_replay.run import replay_ingest
from rivermark.backfill.ingest_replay.undo import undo_replacement
from rivermark.ingest import admission
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    FOLDER,
    MINUTE,
    ordered,
    reading,
    readings,
    rows,
    run,
    windows,
)

pytestmark = pytest.mark.spark

TWO_DAYS = 60 * 24 * 2
THEN = readings(max_files=2)
NOW = readings(
    max_files=2,
    lateness=2 * MINUTE,
    rules=(
        Rule("warm", "temperature > 50", "quarantine", "Above 50 degrees."),
        Rule("freezing", "temperature < 5", "flag", "Below five."),
    ),
)


def land(landing: Landing) -> None:
    landing.put(f"{FOLDER}/1.json", reading(4), reading(1, "s2", 60), reading(2, "s3", 2000), "{")
    landing.put(f"{FOLDER}/2.json", reading(5, "s1", 3), reading(0.5, "s2"), reading(2.5, "s3"))
    landing.put(f"{FOLDER}/3.json", reading(6, "s4"), reading(TWO_DAYS, "s5"))


@pytest.mark.long
def test_what_is_large_is_decided_replaced_and_undone_by_tasks(
    spark: SparkSession, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = Settings(home=tmp_path / "oracle", trigger_seconds=0.1)
    for each, ingest in ((settings, THEN), (others, NOW)):
        land(Landing(Path(each.landing_root)))
        run(spark, each, ingest, windows(ingest))
    before, expected = (state(spark, each) for each in (settings, others))
    assert before != expected

    monkeypatch.setattr(scope, "DRIVER_BYTES", 0)
    monkeypatch.setattr(admission, "DRIVER_BYTES", 0)
    days = date(2024, 3, 1), date(2024, 3, 3)
    report = replay_ingest(context_of(spark, settings, NOW), NOW.name, *days, replacing=True)
    assert state(spark, settings) == expected
    assert rows_accounted_for(settings, NOW).passed
    assert report.done is not None
    undo_replacement(context_of(spark, settings, THEN), THEN, report.done.id)
    assert state(spark, settings) == before
    assert rows_accounted_for(settings, THEN).passed


def context_of(spark: SparkSession, settings: Settings, ingest: Ingest) -> BackfillContext:
    return BackfillContext(
        settings=settings,
        topology=Topology([ingest, windows(ingest)]),
        spark=lambda: spark,
        run_id="again",
    )


def state(spark: SparkSession, settings: Settings) -> dict[str, list[tuple[object, ...]]]:
    """The tables of decisions and the windows, but for when they were made.

    A late row that stays late keeps the watermark that it missed.
    """
    left_out = ("_ingested_at", "_watermark", "_late_by_ms")

    def of(table: Table) -> list[tuple[object, ...]]:
        names = [name for name in table.schema.fieldNames() if name not in left_out]
        return ordered(rows(spark, settings, table, *names))

    tables = (THEN.admitted, THEN.late, THEN.quarantine, *windows().tables)
    return {table.name: of(table) for table in tables}
