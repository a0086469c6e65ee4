"""Drained once, kept running, or computed again for a day: the same tables."""

from __future__ import annotations

import threading
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from rivermark import Ingest, Stream, Topology
from rivermark.lake.snapshot import row_count
from rivermark.model.table import Table
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.supervision.report import Report
from rivermark.runtime.supervision.run import run_continuous
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.background import running
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.recomputing import recompute_days
from tests.spark.helpers.sensors import READINGS, busiest, rows, run, windows
from tests.spark.helpers.stateful_streams import ECHOES, answers, distinct, land_feeds
from tests.spark.runtime.query.test_append import columns_of

pytestmark = pytest.mark.spark

FIRST_OF_MARCH = date(2024, 3, 1)
PER_WINDOW = windows(minutes=1)
DERIVED = (PER_WINDOW, busiest(PER_WINDOW), distinct(), answers())
STREAMS: tuple[Ingest | Stream, ...] = (READINGS, ECHOES, *DERIVED)
EVENING, NEXT_DAY = 13 + 57.5 / 60, 15
"""Hours after ten: from half past 23:57 over midnight, so that windows of both days, partners and
repeats lie on either side; and an hour later, which closes the first day."""


@pytest.mark.long
def test_a_drained_a_continuous_and_a_recomputed_table_are_equal(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    live = Settings(home=tmp_path / "live", trigger_seconds=0.1)
    drained = settings
    landing = Landing(Path(drained.landing_root))
    land_feeds(landing, seed=7, files=3, hour=EVENING)
    land_feeds(landing, seed=8, files=5, hour=NEXT_DAY)
    bounded = run(spark, drained, *STREAMS)
    summaries = run_live(spark, live, written_by(drained))

    assert contents(spark, live) == contents(spark, drained)
    for name, summary in bounded.items():
        assert summaries[name].rows_in == summary.rows_in
        assert summaries[name].rows_out == summary.rows_out
        assert summaries[name].watermark == summary.watermark
        assert summary.dropped_by_watermark == summaries[name].dropped_by_watermark == 0

    before = contents(spark, drained)
    for stream in DERIVED:
        report = recompute_days(spark, drained, stream, FIRST_OF_MARCH)
        assert report.same
        assert all(o.difference.unchanged for o in report.tables.values())
    assert contents(spark, drained) == before


def written_by(settings: Settings) -> dict[Table, int]:
    """How many rows each stream's table holds."""
    tables = [READINGS.admitted, ECHOES.admitted, *(s.tables[0] for s in DERIVED)]
    return {table: row_count(settings.lake(), table) for table in tables}


def run_live(
    spark: SparkSession, settings: Settings, wanted: dict[Table, int]
) -> dict[str, StreamSummary]:
    """Land the same files one after the other while the streams run; stop them when all is there.

    Only the number of rows is waited for: which rows they are is the finding of the test.
    """
    lake, landing = settings.lake(), Landing(Path(settings.landing_root))
    reports: list[Report] = []

    def body(stop: threading.Event) -> object:
        return run_continuous(
            spark,
            settings,
            Topology(STREAMS),
            STREAMS,
            run_id="live",
            stop=stop,
            on_report=reports.append,
        )

    with running(body) as thread:
        land_feeds(landing, seed=7, files=3, hour=EVENING)
        wait_until(
            lambda: (
                row_count(lake, READINGS.admitted) >= 24 and row_count(lake, ECHOES.admitted) > 0
            ),
            reason="the evening is admitted",
            alive=thread.alive,
        )
        land_feeds(landing, seed=8, files=5, hour=NEXT_DAY)
        wait_until(
            lambda: all(row_count(lake, table) >= rows for table, rows in wanted.items()),
            reason="every table has its rows",
            alive=thread.alive,
        )
    final = {r.stream: r for r in reports if r.kind == "final"}
    assert {*final} == {s.name for s in STREAMS}
    assert final[PER_WINDOW.name].closed_days == (FIRST_OF_MARCH,)
    assert isinstance(thread.result, dict)
    return thread.result


def contents(spark: SparkSession, settings: Settings) -> dict[str, list[Row]]:
    """Every derived table and the admitted ones, without what tells of runs and copies."""
    tables = {s.name: (s.tables[0], columns_of(s)) for s in DERIVED}
    for ingest in (READINGS, ECHOES):
        names = [f.name for f in ingest.contract.fields]
        tables[ingest.name] = (ingest.admitted, [*names, "_file", "_row"])
    return {n: rows(spark, settings, t, *columns) for n, (t, columns) in tables.items()}
