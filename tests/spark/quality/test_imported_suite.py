"""Suites of Great Expectations on our tables, and ours evaluated by Great Expectations alone."""

from __future__ import annotations

import json
from pathlib import Path

import great_expectations.expectations as gxe
import pytest
from great_expectations.core import ExpectationSuite
from great_expectations.expectations.metadata_types import FailureSeverity
from pyspark.sql import SparkSession

from rivermark.model.suite import Suite
from rivermark.quality.exported_suite import to_great_expectations
from rivermark.quality.gx.data_docs import opened
from rivermark.quality.gx.evaluator import SparkEvaluator
from rivermark.quality.gx.main_module import main_module_with_a_file
from rivermark.quality.imported_suite import from_great_expectations
from tests.spark.quality.test_evaluators_agree import EVERYTHING, evaluators, suites
from tests.unit.quality.planted import faulty_rows

pytestmark = pytest.mark.spark


class ExpectMilesOnTheGlobe(gxe.ExpectColumnValuesToBeBetween):
    """A team's own expectation."""

    column: str = "miles"
    min_value: float = -180.0
    max_value: float = 180.0


def test_a_suite_that_a_team_has_is_evaluated_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    theirs = ExpectationSuite(
        name="everything",
        expectations=[
            gxe.ExpectColumnMeanToBeBetween(column="miles", min_value=0, max_value=1),
            gxe.ExpectColumnValuesToBeBetween(column="id", min_value=0, strict_min=True),
            gxe.ExpectColumnValuesToMatchRegex(
                column="name", regex="AR", severity=FailureSeverity.WARNING
            ),
            gxe.ExpectColumnDistinctValuesToContainSet(column="name", value_set=["CARD"]),
            ExpectMilesOnTheGlobe(description="on the globe"),
        ],
    )
    unknown = {"type": "expect_nobody_knows", "kwargs": {"column": "name"}}
    wrong = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "name", "floor": 1}}
    more = from_great_expectations({"name": "more", "expectations": [unknown, wrong]})
    suite = Suite("test/everything", (*from_great_expectations(theirs), *more))
    rows = faulty_rows(EVERYTHING.schema, 200)
    frame = spark.createDataFrame(rows, EVERYTHING.schema)

    result = SparkEvaluator(
        frame=frame, table=EVERYTHING.name, version=0, docs_root=tmp_path
    ).evaluate(suite)

    names = [name for name in rows.column("name").to_pylist() if name is not None]
    outside = sum("AR" not in name for name in names)
    by_name = {each.name.partition(":")[0]: each for each in result.results}
    regex = by_name["column values to match regex"]
    assert (regex.passed, regex.severity) == (False, "warning")
    assert (regex.unexpected_count, regex.evaluated_count) == (outside, len(names))
    above = by_name["column values to be between"]
    ids = [each for each in rows.column("id").to_pylist() if each is not None]
    assert above.unexpected_count == sum(each <= 0 for each in ids)
    assert not by_name["on the globe"].passed
    assert by_name["column distinct values to contain set"].passed
    assert not by_name["nobody knows"].passed
    assert "knows no 'expect_nobody_knows'; import the module" in by_name["nobody knows"].observed
    mean, refused = (each for each in result.results if each.name.startswith("column mean"))
    assert not mean.passed
    assert "does not take" in refused.observed
    assert result.docs_path is not None
    assert "on the globe" in result.docs_path.read_text()


@pytest.mark.long
def test_our_suites_have_the_same_results_in_great_expectations_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = faulty_rows(EVERYTHING.schema, 300)
    frame = spark.createDataFrame(rows, EVERYTHING.schema)
    duckdb, _ = evaluators(spark, rows, EVERYTHING, tmp_path)

    for suite in suites():
        document = json.dumps(to_great_expectations(suite, EVERYTHING.schema))
        with main_module_with_a_file(), opened(tmp_path, frame, EVERYTHING.name) as batch:
            theirs = batch.validate(ExpectationSuite(**json.loads(document)))

        held = {
            str(each.expectation_config.meta["rule"]): bool(each.success)
            for each in theirs.results
            if each.expectation_config is not None
        }
        assert held == {each.name: each.passed for each in duckdb.evaluate(suite).results}
