"""Days that are too large for one process: the same tables as by the road of small ones."""

from __future__ import annotations

import shutil
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rivermark import Stream, Topology
from rivermark.backfill import staging, undo
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.late import merge, merged
from rivermark.backfill.late.run import merge_late
from rivermark.backfill.recompute import Order, rehearse
from rivermark.backfill.recompute import replace as replace_days
from rivermark.backfill.registry import newest_records
from rivermark.backfill.verify import verify
from rivermark.monitor.checks.row_conservation import rows_accounted_for
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import (
    FOLDER,
    ordered,
    reading,
    readings,
    rows,
    run,
    windows,
)

pytestmark = pytest.mark.spark

DAY = date(2024, 3, 1)
TWO_DAYS = 60 * 24 * 2
READINGS = readings(max_files=1)
WINDOWS = windows(READINGS)


@pytest.fixture(scope="module")
def world(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which a day is closed, and two of its rows came late."""
    home = tmp_path_factory.mktemp("large_days")
    settings = Settings(home=home, trigger_seconds=0.1)
    landing = Landing(Path(settings.landing_root))
    landing.put(f"{FOLDER}/1.json", *(reading(n, f"s{n % 3}") for n in range(12)))
    landing.put(f"{FOLDER}/2.json", reading(1, "late"), reading(7.5, "s1"), reading(TWO_DAYS))
    run(spark, settings, READINGS, WINDOWS)
    return home


@pytest.fixture
def homes(world: Path, tmp_path: Path) -> list[Settings]:
    """Two copies of it: one for small days, one for large ones."""
    found = []
    for name in ("small", "large"):
        shutil.copytree(world, tmp_path / name)
        found.append(Settings(home=tmp_path / name, trigger_seconds=0.1))
    return found


def large(patch: pytest.MonkeyPatch) -> None:
    """Make every day a large one."""
    for module in (staging, undo, merge, merged):
        patch.setattr(module, "DRIVER_BYTES", 0)


def tables(spark: SparkSession, settings: Settings) -> list[list[tuple[object, ...]]]:
    return [ordered(rows(spark, settings, table)) for table in (READINGS.admitted, *WINDOWS.tables)]


@pytest.mark.long
def test_what_is_done_with_a_large_day_is_what_is_done_with_a_small_one(
    spark: SparkSession, homes: list[Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[list[Any]] = []
    for settings in homes:
        if settings is homes[1]:
            large(monkeypatch)
        steps.append([*everything(spark, settings)])

    small, others = steps
    for number, (one, other) in enumerate(zip(small, others, strict=True)):
        assert one == other, number


def everything(spark: SparkSession, settings: Settings) -> list[Any]:
    """What each way of going over the day again says, and the tables after it."""
    lake, topology = settings.lake(), Topology([READINGS, WINDOWS])
    context = BackfillContext(
        settings=settings, topology=topology, spark=lambda: spark, run_id="again"
    )
    before = tables(spark, settings)

    def order(stream: Stream = WINDOWS) -> Order:
        return Order(stream=stream, first=DAY, last=DAY, run_id="again")

    same = rehearse(spark, settings, order()).tables["test/windows"].difference
    assert same.same
    # Late rows change the admitted table and the windows behind it.
    merged = merge_late(context, [READINGS])
    assert merged.rows == 2
    assert rows_accounted_for(settings, READINGS).passed
    after_merge = tables(spark, settings)
    assert after_merge != before
    # Windows twice as long are another result, of which all rows differ.
    wider = replace(windows(READINGS, minutes=10), name=WINDOWS.name)
    done = replace_days(spark, settings, order(wider)).tables["test/windows"].difference
    after_replace = tables(spark, settings)
    name = newest_records(lake, WINDOWS.name)[0].id
    undone = undo.undo(settings, WINDOWS, name, run_id="again", spark=lambda: spark)
    assert tables(spark, settings) == after_merge
    [told] = verify(lambda: spark, lake, topology, [WINDOWS], days=[DAY])
    return [
        same.counts(),
        after_merge,
        done.counts(),
        done.days,
        done.hours,
        done.sums,
        after_replace,
        undone.tables["test/windows"].difference.counts(),
        told.differences,
        told.published == told.computed,
    ]
