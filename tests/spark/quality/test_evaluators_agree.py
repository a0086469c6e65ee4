"""Great Expectations on Spark and the judge without a JVM say the same of the same faulty rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from assets.topology import TOPOLOGY
from rivermark.quality.duckdb_evaluator import judge_here
from rivermark.quality.gx.run import run_suite
from rivermark.quality.result import SuiteResult
from rivermark.quality.suites import suites_of
from tests.unit.quality.planted import arrow_schema, faulty_rows
from tests.unit.quality.test_suites import planted

pytestmark = pytest.mark.spark

# Together they have every kind of rule: places, money and windows, days of another zone, queries.
TABLES = ("taxi/driver_tips", "taxi/trip_quality", "readings/occupancy")


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_both_give_the_same_numbers(spark: SparkSession, tmp_path: Path, name: str) -> None:
    found = [pair for s in TOPOLOGY.streams for pair in suites_of(s) if pair[0].name == name]
    [(table, suite)] = found
    rows = pa.concat_tables([faulty_rows(table.schema, 400), planted(table)])
    rows = rows.cast(arrow_schema(table.schema))

    here = judge_here(rows, suite, table, version=0)
    there = run_suite(
        spark.createDataFrame(rows, table.schema),
        suite,
        table=name,
        version=0,
        docs_root=tmp_path,
        docs=False,
    )

    assert told(here) == told(there)
    assert len(here.failures) > len(suite.rules) / 2


def told(result: SuiteResult) -> dict[str, tuple[bool, str, int | None, int | None]]:
    return {r.name: (r.passed, r.observed, r.unexpected_count, r.looked_at) for r in result.results}
