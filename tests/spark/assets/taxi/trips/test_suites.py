"""What the suites say of real and made trips (cases B079 and B088)."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from assets.taxi.trips.ingest import TRIP_RECORDS
from assets.taxi.trips.trip_quality import TRIP_QUALITY
from rivermark.model.stream import AnyStream
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.result import SuiteResult
from rivermark.quality.suites import suites_of
from tests.spark.assets.taxi.trips.conftest import OF_RECORDS, OTHERS
from tests.spark.assets.taxi.trips.made_files import FEBRUARY, JANUARY, YELLOW
from tests.spark.assets.taxi.trips.published import Published

pytestmark = pytest.mark.long

NO_JUMP = "no rule's share jumps from month to month"


def evaluated(
    published: Published, stream: AnyStream, column: str, files: tuple[str, ...]
) -> SuiteResult:
    """The stream's suite, of the rows of these files."""
    assert stream.suite is not None
    table = stream.tables[0]
    path = published.settings.lake().path(table)
    rows = DeltaTable(path).to_pyarrow_table(filters=pc.field(column).isin(pa.array(files)))
    return DuckDbEvaluator(rows, table, 0).evaluate(stream.suite)


def test_b079_empty_passengers_and_none_are_two_numbers_with_two_limits(
    published: Published,
) -> None:
    result = evaluated(published, TRIP_RECORDS, "_file", (f"yellow/{YELLOW}",))
    found = {r.name: r for r in result.results}
    not_null, inside = found["passengers is given"], found["passengers lies from 1 to 6"]

    assert (not_null.unexpected_count, not_null.evaluated_count) == (1125, 5000)
    assert (inside.unexpected_count, inside.evaluated_count) == (24, 3875)


@pytest.mark.parametrize(("months", "jumps"), [((JANUARY, FEBRUARY), 1), ((JANUARY,), 0)])
def test_b088_a_share_that_jumps_between_months_is_told(
    published: Published, months: tuple[str, ...], jumps: int
) -> None:
    found = {r.name: r for r in evaluated(published, TRIP_QUALITY, "file", months).results}

    assert found[NO_JUMP].passed == (jumps == 0)
    assert found[NO_JUMP].unexpected_count == jumps


@pytest.mark.parametrize(
    ("lake", "table_of", "suite"),
    [
        *(("published", *pair) for stream in OF_RECORDS for pair in suites_of(stream)),
        *(
            pytest.param("others", *pair, marks=pytest.mark.long)
            for stream in OTHERS
            for pair in suites_of(stream)
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_what_must_hold_of_each_table_holds(
    request: pytest.FixtureRequest, lake: str, table_of: Table, suite: Suite
) -> None:
    published: Published = request.getfixturevalue(lake)
    rows = DeltaTable(published.settings.lake().path(table_of)).to_pyarrow_dataset()

    result = DuckDbEvaluator(rows, table_of, 0).evaluate(suite)

    assert [f"{r.name}: {r.observed}" for r in result.failures if r.severity == "critical"] == []
