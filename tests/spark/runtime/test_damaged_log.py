"""A damaged log under Spark: refused before a row is written, equal once the file is put back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from rivermark.backfill.verify import Verified, verify
from rivermark.model.errors import StreamFailed
from rivermark.model.topology import Topology
from rivermark.monitor.fsck import fsck
from rivermark.settings import Settings
from tests.spark.helpers.sensors import MINUTE, READINGS, admit, reading, rows, run, windows

pytestmark = pytest.mark.spark

PER_WINDOW = windows()
WINDOWS = PER_WINDOW.tables[0]
TOPOLOGY = Topology([READINGS, PER_WINDOW])
DAY = timedelta(days=1) // MINUTE


def admitted_log(settings: Settings, version: int) -> Path:
    """An entry of the log that the stream reads."""
    return Path(settings.lake().path(READINGS.admitted), "_delta_log", f"{version:020d}.json")


def counts(spark: SparkSession, settings: Settings) -> list[int]:
    return [r["readings"] for r in rows(spark, settings, WINDOWS, "window_start", "readings")]


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes().split(b"\n")[0])


def test_a_stream_refuses_a_damaged_entry_of_its_input_and_goes_on_when_it_is_back(
    spark: SparkSession, settings: Settings
) -> None:
    admit(settings, reading(0), reading(1), reading(6), reading(11))
    run(spark, settings, PER_WINDOW)
    before = counts(spark, settings)
    admit(settings, reading(12), reading(16))
    newest = admitted_log(settings, 2)
    whole = newest.read_bytes()
    damages: tuple[Callable[[Path], None], ...] = (empty, cut)
    for damage in damages:
        damage(newest)
        with pytest.raises(StreamFailed) as refused:
            run(spark, settings, PER_WINDOW)
        assert str(newest) in str(refused.value)
        assert f"rivermark fsck {READINGS.admitted.name}" in str(refused.value)
        assert counts(spark, settings) == before
        newest.write_bytes(whole)
    # Its checksum file is only a help: to Spark too, which passes over our field in the others.
    newest.with_suffix(".crc").write_text('{"half')

    admit(settings, reading(21))
    run(spark, settings, PER_WINDOW)

    assert counts(spark, settings) == [2, 1, 2, 1]
    # The readings were admitted without a query, so they have no checkpoint.
    faults = fsck(settings, TOPOLOGY).faults
    assert [each for each in faults if each.of != READINGS.name] == []


def test_a_hole_in_a_derived_table_is_found_by_computing_a_sample_again(
    spark: SparkSession, settings: Settings
) -> None:
    for day in range(3):
        start = day * DAY
        admit(settings, *(reading(start + minute) for minute in (0, 1, 6, 11)))
    run(spark, settings, PER_WINDOW)

    def verified(*days: date) -> list[Verified]:
        results = verify(
            lambda: spark,
            settings.lake(),
            TOPOLOGY,
            [READINGS, PER_WINDOW],
            days=days,
            today=date(2024, 6, 1),
        )
        return [*results]

    whole = verified()
    assert [(r.day, r.matches) for r in whole] == [
        (date(2024, 3, 1), True),
        (date(2024, 3, 2), True),
    ]
    assert [r.published[WINDOWS.name].rows for r in whole] == [3, 3]

    # What lost commits leave: windows that are missing, and no rule that is broken.
    DeltaTable(settings.lake().path(WINDOWS)).delete("window_start = '2024-03-02T10:05:00Z'")
    first, second = verified()
    assert first.matches
    assert not second.matches
    assert second.differences == {WINDOWS.name: "1 added, 0 removed, 0 changed, 2 unchanged"}
    assert "rivermark reprocess test/windows --from 2024-03-02 --follow-ups" in second.sentence
    assert verified(date(2024, 3, 1))[0].matches
    assert verified(date(2024, 3, 3))[0].skipped == "not a closed day with rows"
