"""Suites of Great Expectations on our tables, and ours evaluated by Great Expectations alone."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rivermark import Stream, Table
from rivermark.model.suite import Suite
from rivermark.quality.exported_suite import to_great_expectations
from rivermark.quality.gx.evaluator import SparkEvaluator
from rivermark.quality.gx.main_module import main_module_with_a_file
from rivermark.quality.imported_suite import from_great_expectations
from rivermark.runtime.preflight.suites import suite_faults
from tests.spark.quality.test_evaluators_agree import EVERYTHING, evaluators, suites
from tests.unit.quality.planted import faulty_rows
from tests.unit.quality.test_imported_suite import expectation

pytestmark = pytest.mark.spark


def test_a_suite_that_a_team_has_is_evaluated_as_it_is(spark: SparkSession, tmp_path: Path) -> None:
    theirs = {
        "name": "everything",
        "expectations": [
            expectation("expect_column_mean_to_be_between", column="miles", max_value=1),
            expectation(
                "expect_column_values_to_be_between", column="id", min_value=0, strict_min=True
            ),
            expectation(
                "expect_column_values_to_match_regex", "warning", column="name", regex="AR"
            ),
            expectation(
                "expect_column_distinct_values_to_contain_set", column="name", value_set=["CARD"]
            ),
            {**expectation("expect_miles_on_the_globe"), "description": "on the globe"},
        ],
    }
    unknown = {"type": "expect_nobody_knows", "kwargs": {"column": "name"}}
    misspelt = {"type": "expect_miles_on_the_glob", "kwargs": {"column": "name"}}
    wrong = {"type": "expect_column_mean_to_be_between", "kwargs": {"column": "name", "floor": 1}}
    more = from_great_expectations({"name": "more", "expectations": [unknown, wrong]})
    known = from_great_expectations(theirs, module="tests.spark.helpers.team_expectations")
    near = from_great_expectations(
        {"name": "near", "expectations": [misspelt]}, module="tests.spark.helpers.team_expectations"
    )
    suite = Suite("test/everything", (*known, *more))
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
    assert "knows no 'expect_nobody_knows'; give the module" in by_name["nobody knows"].observed
    mean, refused = (each for each in result.results if each.name.startswith("column mean"))
    assert not mean.passed
    assert "does not take" in refused.observed
    assert result.docs_path is not None
    assert "on the globe" in result.docs_path.read_text()
    # `rivermark check` says the same before any run.
    read = Table(name="test/read", schema="at timestamp", description="Read.", event_time="at")
    stream = Stream(
        reads=(read,),
        build=lambda rows: rows,
        writes=EVERYTHING,
        group="test",
        lateness=timedelta(0),
        suite=Suite("test/everything", (*known, *more, *near)),
    )
    faults = [str(fault) for fault in suite_faults(stream)]
    assert len(faults) == 3
    assert "knows no 'expect_nobody_knows'; give the module" in faults[0]
    assert "does not take" in faults[1]
    assert "did you mean 'expect_miles_on_the_globe'?" in faults[2]
    assert all("test_imported_suite.py, line " in fault for fault in faults)


def test_what_great_expectations_observes_of_personal_columns_reaches_no_result_and_no_page(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame(
        [("Ada Lovelace", 1.5), ("Bob Dylan", 2.5)], "name string, miles double"
    )
    theirs = [
        expectation("expect_column_distinct_values_to_be_in_set", column="name", value_set=["Eve"]),
        expectation(
            "unexpected_rows_expectation",
            unexpected_rows_query="SELECT *, pi() FROM {batch} WHERE miles > 2",
        ),
        expectation("expect_column_values_to_match_regex", column="name", regex="^X"),
        expectation("expect_column_max_to_be_between", column="miles", max_value=2),
    ]
    known = from_great_expectations({"name": "known", "expectations": theirs})

    result = SparkEvaluator(
        frame=frame, table="test/people", version=0, docs_root=tmp_path, personal=("name",)
    ).evaluate(Suite("test/people", known))

    distinct, rows, regex, highest = (each for each in result.results if not each.passed)
    assert distinct.observed == rows.observed == "withheld: the table has personal columns"
    assert (regex.unexpected_count, highest.observed) == (2, "2.5")
    stored = [path.read_text() for path in tmp_path.rglob("*") if path.suffix in (".json", ".html")]
    assert len(stored) > 2
    assert not any(name in text for text in stored for name in ("Ada ", "Bob "))


@pytest.mark.long
def test_our_suites_have_the_same_results_in_great_expectations_alone(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = faulty_rows(EVERYTHING.schema, 300)
    frame = spark.createDataFrame(rows, EVERYTHING.schema)
    duckdb, _ = evaluators(spark, rows, EVERYTHING, tmp_path)

    for suite in suites():
        document = json.dumps(to_great_expectations(suite, EVERYTHING.schema))
        with main_module_with_a_file():
            # Imported as the evaluator does it: elsewhere that ends a process without a main file.
            from great_expectations.core import ExpectationSuite

            from rivermark.quality.gx.data_docs import opened

            exported = ExpectationSuite(**json.loads(document))
            with opened(tmp_path, frame, EVERYTHING.name) as batch:
                theirs = batch.validate(exported)
        back = from_great_expectations(exported)

        held = {
            str(each.expectation_config.meta["rule"]): bool(each.success)
            for each in theirs.results
            if each.expectation_config is not None
        }
        assert held == {each.name: each.passed for each in duckdb.evaluate(suite).results}
        assert [rule.name for each in back for rule in each] == [r.name for r in suite.rules]
