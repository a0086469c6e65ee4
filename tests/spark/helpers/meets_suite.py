"""A table beside its suite, evaluated without Spark."""

from deltalake import DeltaTable

from rivermark.lake.lake import Lake
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator


def assert_meets(lake: Lake, table: Table, suite: Suite) -> None:
    """The table has rows, and breaks no rule that is more than information."""
    rows = DeltaTable(lake.path(table)).to_pyarrow_dataset()

    result = DuckDbEvaluator(rows, table, 0).evaluate(suite)

    broken = [f"{f.name}: {f.observed}" for f in result.failures if f.severity != "info"]
    assert broken == [], broken
    assert result.rows > 0
