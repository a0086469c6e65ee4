"""Bounded runs publish no row that breaks a critical rule; live ones go on and are checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from rivermark import Stream, Table
from rivermark.model import expectations as expect
from rivermark.model.errors import StreamFailed
from rivermark.model.suite import Suite
from rivermark.quality import publish_gate as quality_audit
from rivermark.quality.errors import PublicationBlocked
from rivermark.runtime.query import append as appending
from rivermark.runtime.spark import input_size
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import FOLDER, READINGS, admit, reading, rows, run, windows
from tests.spark.runtime.query.test_refresh import DUMP, MARCH, counts, per_day

pytestmark = pytest.mark.spark

KEPT = ("sensor", "at", "temperature")
FEW = Suite("test/windows", (expect.between("readings", 1, 1),))
MANY = Suite("test/windows", (expect.between("readings", 1, 9),))


def no_event(sensor: str, minutes: Sequence[float]) -> list[str]:
    return [reading(m, sensor) for m in minutes]


def test_a_bounded_run_with_bad_rows_publishes_nothing_until_the_rule_or_code_is_mended(
    spark: SparkSession, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    strict = windows(suite=FEW)
    after = after_of(strict)
    admit(settings, *no_event("s1", (0, 1, 2)), reading(20), reading(21))

    with pytest.raises(StreamFailed, match="'readings lies from 1 to 1' by 1 row") as stopped:
        run(spark, settings, strict, after)
    assert isinstance(stopped.value.__cause__, PublicationBlocked)
    assert "rivermark show test/windows --refused" in str(stopped.value)
    assert rows(spark, settings, strict.tables[0]) == []
    refused = DeltaTable(settings.lake().staged(strict.tables[0])).to_pyarrow_table()
    assert refused["readings"].to_pylist() == [3]

    # Killed after the audit, before the commit: the next run audits and commits, once.
    mended = windows(suite=MANY)
    killed_after_audit(monkeypatch)
    with pytest.raises(StreamFailed, match="killed"):
        run(spark, settings, mended)
    assert rows(spark, settings, mended.tables[0]) == []
    monkeypatch.undo()
    run(spark, settings, mended, after)

    found = rows(spark, settings, mended.tables[0])
    assert [(r["sensor"], r["readings"]) for r in found] == [("s1", 3)]
    assert len(rows(spark, settings, after.tables[0])) == 1
    assert not Path(settings.lake().staged(mended.tables[0])).exists()


@pytest.mark.long
def test_a_large_batch_is_staged_by_executors(
    spark: SparkSession, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As above, with a batch of events that the driver may not hold."""
    admit(settings, *no_event("s1", (0, 1, 2)), reading(20), reading(21))
    monkeypatch.setattr(input_size, "DRIVER_BYTES", 0)
    cool = Suite("test/kept", (expect.between("temperature", -90, 20),))
    kept = kept_of(suite=cool)
    staged = Path(settings.lake().staged(kept.tables[0]))

    with pytest.raises(StreamFailed, match="'temperature lies from -90 to 20' by 5 rows"):
        run(spark, settings, kept)
    assert rows(spark, settings, kept.tables[0]) == []
    assert DeltaTable(str(staged)).to_pyarrow_table().num_rows == 5

    run(spark, settings, replace(kept, suite=None))

    assert len(rows(spark, settings, kept.tables[0])) == 5
    assert not staged.exists()


@pytest.mark.long
def test_a_refreshed_day_and_a_recomputed_one_are_audited_too(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    few = Suite("test/days", (expect.between("readings", 1, 2),))
    days = per_day(suite=few)
    landing.put(f"{FOLDER}/1.json", reading(0), reading(1))
    run(spark, settings, DUMP, days)
    assert counts(spark, settings) == {MARCH[0]: 2}

    landing.put(f"{FOLDER}/2.json", reading(2))
    with pytest.raises(StreamFailed, match="'readings lies from 1 to 2' by 1 row"):
        run(spark, settings, DUMP, days)
    assert counts(spark, settings) == {MARCH[0]: 2}, "the day is as it was"
    with pytest.raises(PublicationBlocked, match="'readings lies from 1 to 2' by 1 row"):
        recompute_days(spark, settings, days, MARCH[0])
    assert counts(spark, settings) == {MARCH[0]: 2}

    run(spark, settings, DUMP, replace(days, suite=None))
    assert counts(spark, settings) == {MARCH[0]: 3}


def after_of(stream: Stream) -> Stream:
    """A stream that reads the audited one."""

    def same(windows: DataFrame) -> DataFrame:
        return windows.withColumn("readings", F.col("readings") + 0)

    return Stream(
        name="test/after",
        reads=(stream,),
        build=same,
        writes=replace(stream.tables[0], name="test/after"),
        description="The same again.",
        group="test",
    )


def kept_of(suite: Suite) -> Stream:
    """Readings as they are."""
    return Stream(
        name="test/kept",
        reads=(READINGS,),
        build=lambda readings: readings.select(*KEPT),
        writes=Table(
            name="test/kept",
            schema=StructType(
                [READINGS.admitted.schema[c] for c in ("sensor", "at", "temperature")]
            ),
            description="Readings.",
            event_time="at",
        ),
        description="Readings.",
        group="test",
        volume="events",
        suite=suite,
    )


def killed_after_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(*args: Any, **how: Any) -> None:
        quality_audit.audit(*args, **how)
        raise OSError("killed")

    monkeypatch.setattr(appending, "audit", kill)
