"""What the suites say of real and made trips (cases B079 and B088)."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame

from assets.taxi.trips.ingest import TRIP_RECORDS
from assets.taxi.trips.streams import STREAMS
from assets.taxi.trips.trip_quality import TRIP_QUALITY
from rivermark.model.stream import AnyStream
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.gx.evaluator import SparkEvaluator
from rivermark.quality.result import SuiteResult
from rivermark.quality.suites import suites_of
from tests.spark.assets.taxi.trips.made_files import FEBRUARY, JANUARY, YELLOW
from tests.spark.assets.taxi.trips.published import Published

NO_JUMP = "no rule's share jumps from month to month"


def table(published: Published, stream: AnyStream) -> DataFrame:
    path = published.settings.lake().path(stream.tables[0])
    return published.spark.read.format("delta").load(path)


def evaluated(rows: DataFrame, stream: AnyStream, folder: Path) -> SuiteResult:
    assert stream.suite is not None
    name = stream.tables[0].name
    evaluator = SparkEvaluator(frame=rows, table=name, version=0, docs_root=folder, docs=False)
    return evaluator.evaluate(stream.suite)


def test_b079_empty_passengers_and_none_are_two_numbers_with_two_limits(
    published: Published, tmp_path: Path
) -> None:
    rows = table(published, TRIP_RECORDS).where(f"_file = 'yellow/{YELLOW}'")
    found = {r.name: r for r in evaluated(rows, TRIP_RECORDS, tmp_path).results}
    not_null, inside = found["passengers is given"], found["passengers lies from 1 to 6"]

    assert (not_null.unexpected_count, not_null.evaluated_count) == (1125, 5000)
    assert (inside.unexpected_count, inside.evaluated_count) == (24, 3875)


@pytest.mark.parametrize(("months", "jumps"), [((JANUARY, FEBRUARY), 1), ((JANUARY,), 0)])
def test_b088_a_share_that_jumps_between_months_is_told(
    published: Published, tmp_path: Path, months: tuple[str, ...], jumps: int
) -> None:
    rows = table(published, TRIP_QUALITY).where(f"file IN ({', '.join(map(repr, months))})")
    found = {r.name: r for r in evaluated(rows, TRIP_QUALITY, tmp_path).results}

    assert found[NO_JUMP].passed == (jumps == 0)
    assert found[NO_JUMP].unexpected_count == jumps


@pytest.mark.parametrize(
    ("table_of", "suite"),
    [pair for stream in STREAMS for pair in suites_of(stream)],
    ids=lambda value: getattr(value, "name", None),
)
def test_what_must_hold_of_each_table_holds(
    published: Published, table_of: Table, suite: Suite
) -> None:
    rows = DeltaTable(published.settings.lake().path(table_of)).to_pyarrow_dataset()

    result = DuckDbEvaluator(rows, table_of, 0).evaluate(suite)

    assert [f"{r.name}: {r.observed}" for r in result.failures if r.severity == "critical"] == []
