"""Late fares folded beside live streams, by a fold that is killed in the middle and taken up."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from assets.taxi.cleansing import CLEAN_FARES
from assets.taxi.ingest import FARE_EVENTS
from assets.taxi.tips import DRIVER_TIPS, HOURLY_WINNERS
from rivermark.backfill import replace_changed as module
from rivermark.backfill.pending import pending_days
from rivermark.backfill.registry import newest_records
from rivermark.lake.log import CommitLog
from rivermark.lake.replace import replace_days
from rivermark.lake.schema import create_table
from rivermark.model.stream import AnyStream
from rivermark.monitor.completeness.days import derived_days
from rivermark.settings import Settings
from tests.late_world import BEGIN, DAY, HOUR, assert_fares_equal, late_world
from tests.oracles.rides import TaxiOracle

pytestmark = pytest.mark.spark

FIRST = date(2020, 1, 1)
STREAMS: list[AnyStream] = [FARE_EVENTS, CLEAN_FARES, DRIVER_TIPS, HOURLY_WINNERS]


class KilledError(Exception):
    """The end of a process, made by the test."""


@pytest.mark.long
def test_what_follows_from_late_rows_is_computed_again_also_after_a_kill(
    spark: SparkSession, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill_at_tips(*given: Any, **more: Any) -> Any:
        if given[1] is DRIVER_TIPS:
            raise KilledError
        return real(*given, **more)

    real, end = module.replace_changed, BEGIN + DAY + 6 * HOUR
    with late_world(spark, settings, tmp_path / "dripped", STREAMS, until_moment=end) as world:
        world.land(BEGIN + DAY + 3 * HOUR)
        late = [r for r in TaxiOracle(world.landing).fares.late if r["event_time"] < BEGIN + DAY]
        assert late
        before = world.rows("taxi/hourly_winners", "window_end", "tips")
        with monkeypatch.context() as patch:
            patch.setattr(module, "replace_changed", kill_at_tips)
            with pytest.raises(KilledError):
                world.fold()
        # The rows are in, and the day says that what follows from them is still to come.
        assert world.days(FARE_EVENTS.name)[FIRST].unmerged == 0
        (day,) = derived_days(settings, world.topology, DRIVER_TIPS, FIRST, FIRST)
        assert (day.state, day.pending) == ("warn", True)

        report = world.fold()

        assert (report.rows, report.resumed) == (0, 1)
        assert_fares_equal(world, TaxiOracle(world.landing, timedelta(days=9)), BEGIN + DAY)
        assert world.rows("taxi/hourly_winners", "window_end", "tips") != before
        (day,) = derived_days(settings, world.topology, DRIVER_TIPS, FIRST, FIRST)
        assert (day.state, day.pending) == ("complete", False)
        assert pending_days(settings.lake(), world.topology) == {}
        # Only days whose rows differ were replaced, and folding again computes nothing.
        assert all(set(t.changed.days) <= {FIRST} for t in report.downstream.recomputed)
        assert world.fold().downstream.recomputed == []
        # What was replaced is in the register, with the versions read and the fold that caused it.
        records = {r.table: r for r in newest_records(settings.lake())}
        assert set(records) == {t.name for s in STREAMS[1:] for t in s.tables}
        fares = records["taxi/clean_fares"]
        assert (fares.added, fares.removed, fares.changed) == (len(late), 0, 0)
        assert all(r.because and r.first_day == r.last_day == FIRST for r in records.values())

        world.land(end)
        world.assert_nothing_dropped()


def test_a_frame_that_fills_an_empty_day_is_a_change_that_streams_skip(
    spark: SparkSession, settings: Settings
) -> None:
    lake, table = settings.lake(), CLEAN_FARES.tables[0]
    create_table(lake, table)
    path, second = lake.path(table), FIRST + timedelta(days=1)
    schema = pa.schema(DeltaTable(path).schema().to_arrow())
    there = pa.Table.from_pylist([{"ride_id": 1, "event_time": BEGIN}], schema)
    write_deltalake(path, there, mode="append")
    new = pa.Table.from_pylist([{"ride_id": 2, "event_time": BEGIN + DAY}], schema)

    assert replace_days(lake, table, spark.createDataFrame(new), [second], {}) == 1

    assert sorted(DeltaTable(path).to_pyarrow_table()["ride_id"].to_pylist()) == [1, 2]
    newest = CommitLog(path).latest()
    assert newest is not None
    assert CommitLog(path).takes_files(newest.version)
