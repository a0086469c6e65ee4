"""The console on a real engine: the demo's rides flow, twice; then a stream is mended."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession
from typer.testing import CliRunner, Result

from assets.taxi.cleansing import CLEAN_FARES
from assets.taxi.ingest import FARE_EVENTS
from assets.taxi.tips import DRIVER_TIPS, HOURLY_WINNERS
from rivermark.cli.main import app
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.monitor.checks.history import newest_results
from rivermark.monitor.dashboard.refresh import checks_to_evaluate, page_path
from rivermark.runtime.supervision.lineage_record import recorded_lineage
from rivermark.settings import Settings
from simulator.taxi.demo import SCENE

STREAMS: list[AnyStream] = [FARE_EVENTS, CLEAN_FARES, DRIVER_TIPS, HOURLY_WINNERS]
WINNERS = ("76.00", "71.00", "83.00", "81.00", "73.00", "123.00")


class Console:
    """The console command, with the session of the tests for its engine."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def __call__(self, *arguments: str) -> Result:
        runner = CliRunner(env={"RIVERMARK_HOME": str(self.settings.home)})
        return runner.invoke(app, list(arguments), catch_exceptions=False)

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        table = DeltaTable(self.settings.lake().path(name)).to_pyarrow_table()
        return sorted(tuple(row.values()) for row in table.to_pylist())


@pytest.fixture(scope="module")
def rivermark(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    @contextmanager
    def engine(*_: object) -> Iterator[SparkSession]:
        yield spark

    with pytest.MonkeyPatch.context() as patch:
        for command in ("demo", "run", "backfill"):
            patch.setattr(f"rivermark.cli.{command}.engine", engine)
        for command in ("demo", "run", "reprocess", "reset"):
            patch.setattr(f"rivermark.cli.{command}.topology", lambda: Topology(STREAMS))
        patch.setattr("rivermark.cli.demo.scenes", lambda: {"taxi": SCENE})
        yield Console(Settings(home=tmp_path_factory.mktemp("home")))


@pytest.fixture(scope="module")
def demo(rivermark: Console) -> Result:
    """The first demo in this home."""
    return rivermark("demo")


def test_the_demo_shows_streams_checks_winners_charts_and_what_to_try(
    rivermark: Console, demo: Result
) -> None:
    assert demo.exit_code == 0, demo.output
    for stream in STREAMS:
        assert f"{stream.name}: " in demo.stderr
        assert stream.name in demo.stdout
    places = [demo.stdout.index(tips) for tips in WINNERS]
    assert places == sorted(places)
    [(held, evaluated)] = re.findall(r"(\d+) of (\d+) checks hold", demo.stdout)
    assert held == evaluated
    charts = sorted(f.name for f in (rivermark.settings.home / "charts").iterdir())
    assert charts == ["published_results.svg", "rows_per_hour.svg"]
    assert demo.stdout.count("rivermark show taxi/zone_hours") == 1
    lineage = recorded_lineage(rivermark.settings.state, DRIVER_TIPS)
    assert lineage["tips"] == [(CLEAN_FARES.name, "tip")]


def test_the_demo_leaves_a_dashboard_and_results_of_its_checks_for_dagster(
    rivermark: Console, demo: Result
) -> None:
    page = page_path(rivermark.settings)
    results = newest_results(rivermark.settings, 1)

    assert f"dashboard: {page}" in demo.stdout.replace("\n", "")
    assert page.is_file()
    assert {(r.table, r.check) for r in results} == {
        (check.table.name, check.name)
        for check in checks_to_evaluate(rivermark.settings, Topology(STREAMS))
    }
    assert [r for r in results if not r.passed] == []


@pytest.mark.long
def test_a_second_demo_adds_nothing_and_says_so(rivermark: Console, demo: Result) -> None:
    names = [t.name for s in STREAMS for t in s.tables]
    before = {name: rivermark.rows(name) for name in names}

    again = rivermark("demo")

    assert again.exit_code == 0, again.output
    assert "Nothing new had landed" in again.stdout
    assert {name: rivermark.rows(name) for name in names} == before


@pytest.mark.long
def test_a_stream_started_over_fills_its_tables_with_the_same_rows(
    rivermark: Console, demo: Result
) -> None:
    names = (DRIVER_TIPS.name, HOURLY_WINNERS.name)
    before = [rivermark.rows(name) for name in names]

    reset = rivermark("reset", DRIVER_TIPS.name, "--yes")
    run = rivermark("run", *names)

    assert reset.exit_code == 0, reset.output
    assert run.exit_code == 0, run.output
    assert [rivermark.rows(name) for name in names] == before


@pytest.mark.long
def test_an_ingest_started_over_reads_its_folder_again(rivermark: Console, demo: Result) -> None:
    streams = [FARE_EVENTS.name, CLEAN_FARES.name, DRIVER_TIPS.name]
    before = [len(rivermark.rows(name)) for name in streams]
    winners = rivermark.rows(HOURLY_WINNERS.name)

    assert rivermark("reset", FARE_EVENTS.name, "--yes").exit_code == 1
    assert rivermark("reset", FARE_EVENTS.name, "--yes", "--with-tables").exit_code == 0
    again = rivermark("demo")

    assert again.exit_code == 0, again.output
    assert "left over from an earlier run" in again.stdout
    assert [len(rivermark.rows(name)) for name in streams] == before
    assert rivermark.rows(HOURLY_WINNERS.name) == winners


def test_a_day_that_is_still_open_is_not_computed_again(rivermark: Console, demo: Result) -> None:
    before = rivermark.rows(HOURLY_WINNERS.name)
    day = f"{before[0][1]:%Y-%m-%d}"

    result = rivermark("reprocess", HOURLY_WINNERS.name, "--from", day)

    # The day is still open: its last hours have not come.
    assert result.exit_code == 1
    assert f"{day} is still open" in result.stderr
    assert rivermark.rows(HOURLY_WINNERS.name) == before
