"""DuckDB and Great Expectations on Spark return the same results for the same faulty rows."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import (
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from assets.topology import TOPOLOGY
from rivermark import Daily, Table
from rivermark.model import expectations as expect
from rivermark.model.errors import DeclarationError
from rivermark.model.question import RowQuestion, RowSearch, TableQuestion
from rivermark.model.rule import Expectation
from rivermark.model.suite import Suite
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.gx.evaluator import SparkEvaluator
from rivermark.quality.result import Evaluator, SuiteResult
from rivermark.quality.suites import suites_of
from rivermark.quality.time_expectations import no_overlap, not_ahead, usual_rows
from tests.unit.quality.planted import NOON, arrow_schema, faulty_rows
from tests.unit.quality.test_suites import odd_day, planted

pytestmark = pytest.mark.spark

EVERYTHING = Table(
    name="test/everything",
    schema=StructType(
        [
            StructField("id", LongType()),
            StructField("name", StringType()),
            StructField("paid", BooleanType()),
            StructField("money", DecimalType(12, 2)),
            StructField("miles", DoubleType()),
            StructField("day", DateType()),
            StructField("window_start", TimestampType()),
            StructField("window_end", TimestampType()),
        ]
    ),
    description="A column of each type.",
    days=Daily("window_start", NOON.date(), "America/New_York"),
)

EXPECTATIONS: tuple[Expectation, ...] = (
    expect.columns_match(EVERYTHING.schema),
    expect.row_count_between(1, 10, name="few rows"),
    expect.row_count_between(5_000, name="many rows"),
    expect.not_null("id"),
    expect.not_null("name", mostly=0.5),
    expect.unique("id", allow_null_share=1.0),
    expect.unique(("id", "name"), allow_null_share=1.0),
    expect.between("id", 0, 40, mostly=0.9),
    expect.between("money", 0, allow_null_share=1.0),
    expect.between("miles", -100, high_excluded=True, allow_null_share=0.5),
    expect.between("miles", None, 60, high_excluded=True, allow_null_share=0.5),
    expect.between("day", "2026-03-02", "2026-03-02"),
    expect.between("window_start", "2026-03-02 12:00:00", "2026-03-03", high_excluded=True),
    expect.in_set("name", ["CARD", "card"]),
    expect.in_set("paid", [True], mostly=0.4),
    expect.in_set("id", [1, 2, 3]),
    expect.matches_regex("name", "[a-z]+", mostly=0.5),
    expect.pair_ordered("window_start", "window_end"),
    expect.pair_ordered("window_start", "window_end", strictly=True, mostly=0.2),
    expect.no_rows_where("money < 0", name="no debt"),
    expect.no_rows_where("money > 200", name="few large", at_most=1_000),
    expect.no_rows_from("SELECT id FROM {batch} GROUP BY id HAVING count(*) > 3", name="rare ids"),
    no_overlap("id"),
    not_ahead("window_start", "window_end", timedelta(hours=1)),
    usual_rows(Daily("window_start", NOON.date(), "America/New_York")),
    usual_rows(Daily("day", NOON.date())),
)

# Together they show that declared suites use every kind in the same way.
TABLES = ("taxi/driver_tips", "taxi/trip_quality", "readings/occupancy")


def evaluators(
    spark: SparkSession, rows: pa.Table, table: Table, folder: Path
) -> tuple[Evaluator, Evaluator]:
    frame = spark.createDataFrame(rows, table.schema)
    return (
        DuckDbEvaluator(rows, table, 0),
        SparkEvaluator(frame=frame, table=table.name, version=0, docs_root=folder, docs=False),
    )


def outcomes(result: SuiteResult) -> dict[str, tuple[bool, str, str, int | None, int | None]]:
    return {
        r.name: (r.passed, r.observed, r.bound, r.unexpected_count, r.evaluated_count)
        for r in result.results
    }


def test_every_kind_of_question_is_compared() -> None:
    kinds = {k for union in (TableQuestion, RowQuestion, RowSearch) for k in get_args(union)}

    assert {type(rule.question) for rules in EXPECTATIONS for rule in rules} == kinds


def suites() -> list[Suite]:
    """All expectations in few suites; two of one name and of different bounds are kept apart."""
    found: list[Suite] = []
    for expectation in EXPECTATIONS:
        for place, suite in enumerate(found):
            try:
                found[place] = Suite(suite.name, (*suite.expectations, expectation))
            except DeclarationError:
                continue
            break
        else:
            found.append(Suite(EVERYTHING.name, (expectation,)))
    return found


def test_each_expectation_has_the_same_result(spark: SparkSession, tmp_path: Path) -> None:
    schema = arrow_schema(EVERYTHING.schema)
    odd = pa.Table.from_pylist(odd_day(EVERYTHING), schema=schema)
    rows = pa.concat_tables([faulty_rows(EVERYTHING.schema, 300), odd])
    duckdb, gx = evaluators(spark, rows, EVERYTHING, tmp_path)

    for suite in suites():
        in_duckdb, on_spark = duckdb.evaluate(suite), gx.evaluate(suite)
        assert outcomes(in_duckdb) == outcomes(on_spark)
        assert in_duckdb.rows == on_spark.rows == rows.num_rows


def test_rows_that_do_not_exist_have_the_same_results(spark: SparkSession, tmp_path: Path) -> None:
    rows = faulty_rows(EVERYTHING.schema, 1).slice(0, 0)
    in_duckdb, on_spark = evaluators(spark, rows, EVERYTHING, tmp_path)

    for may_be_empty in (True, False):
        suite = Suite(
            EVERYTHING.name,
            # The names of the columns are compared without rows, too; of days there are none.
            (expect.columns_match("id"), expect.not_null("id"), expect.unique("name")),
            may_be_empty=may_be_empty,
        )
        assert outcomes(in_duckdb.evaluate(suite)) == outcomes(on_spark.evaluate(suite))


@pytest.mark.long
@pytest.mark.parametrize("name", TABLES)
def test_declared_suites_have_the_same_results(
    spark: SparkSession, tmp_path: Path, name: str
) -> None:
    [(table, suite)] = [p for s in TOPOLOGY.streams for p in suites_of(s) if p[0].name == name]
    rows = pa.concat_tables([faulty_rows(table.schema, 400), planted(table)])
    rows = rows.cast(arrow_schema(table.schema))

    in_duckdb, on_spark = (e.evaluate(suite) for e in evaluators(spark, rows, table, tmp_path))

    assert outcomes(in_duckdb) == outcomes(on_spark)
    assert len(in_duckdb.failures) > len(suite.rules) / 2
