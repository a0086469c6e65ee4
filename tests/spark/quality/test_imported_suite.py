"""Suites of Great Expectations on our tables, and ours evaluated by Great Expectations alone."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
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

from rivermark import Daily, Stream, Table
from rivermark.model import expectations as expect
from rivermark.model.errors import DeclarationError
from rivermark.model.rule import Expectation
from rivermark.model.suite import Suite
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.exported_suite import to_great_expectations
from rivermark.quality.gx.evaluator import DocsEvaluator
from rivermark.quality.gx.main_module import main_module_with_a_file
from rivermark.quality.imported_suite import from_great_expectations
from rivermark.quality.time_expectations import no_overlap, not_ahead, usual_rows
from rivermark.runtime.preflight.faults import suite_faults
from tests.unit.quality.planted import NOON, faulty_rows
from tests.unit.quality.test_imported_suite import expectation

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


def suites() -> list[Suite]:
    """All expectations in few suites; two of one name and of different bounds are kept apart."""
    found: list[Suite] = []
    for each in EXPECTATIONS:
        for place, suite in enumerate(found):
            try:
                found[place] = Suite(suite.name, (*suite.expectations, each))
            except DeclarationError:
                continue
            break
        else:
            found.append(Suite(EVERYTHING.name, (each,)))
    return found


def docs_evaluator(
    frame: DataFrame, table: Table, folder: Path, *, docs: bool = True
) -> DocsEvaluator:
    """An evaluator of rows that Spark has too."""
    rows = frame.toArrow()
    return DocsEvaluator(
        rows=rows, table=table, version=0, docs_root=folder, frame=lambda: frame, docs=docs
    )


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

    result = docs_evaluator(frame, EVERYTHING, tmp_path).evaluate(suite)

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

    people = Table(
        name="test/people", schema=frame.schema, description="People.", personal=("name",)
    )
    result = docs_evaluator(frame, people, tmp_path).evaluate(Suite("test/people", known))

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
    duckdb = DuckDbEvaluator(rows, EVERYTHING, 0)

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


def test_m037_what_great_expectations_observes_stands_on_a_page_as_text(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.createDataFrame([("<b>Ada</b><script>alert(1)</script>",)], "name string")
    people = Table(name="test/people", schema=frame.schema, description="People.")
    theirs = [
        expectation("expect_column_distinct_values_to_be_in_set", column="name", value_set=["Eve"]),
        expectation("expect_column_most_common_value_to_be_in_set", column="name", value_set=["E"]),
        expectation("expect_column_values_to_match_regex", column="name", regex="^X"),
    ]
    known = from_great_expectations({"name": "known", "expectations": theirs})

    result = docs_evaluator(frame, people, tmp_path).evaluate(Suite("test/people", known))

    assert len(result.failures) == 3
    assert result.docs_path is not None
    page = result.docs_path.read_text()
    assert "&lt;b&gt;Ada" in page
    assert not any(markup in page for markup in ("<b>Ada", "<script"))


def test_the_session_is_left_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    configured = spark.conf.getAll
    # Delta keeps the state of tables that other tests read.
    cached = set(spark.sparkContext._jsc.getPersistentRDDs())
    spark.range(1).selectExpr("'mine' AS whose").createOrReplaceTempView("tmp_view")
    rows = spark.range(10).toDF("id")
    numbers = Table(name="test/numbers", schema=rows.schema, description="Numbers.")
    query = "SELECT *, pi() FROM {batch} WHERE id > 100"
    theirs = [expectation("unexpected_rows_expectation", unexpected_rows_query=query)]
    suite = Suite("test/numbers", from_great_expectations({"name": "n", "expectations": theirs}))

    assert docs_evaluator(rows, numbers, tmp_path).evaluate(suite).passed

    assert spark.conf.getAll == configured
    assert set(spark.sparkContext._jsc.getPersistentRDDs()) <= cached
    assert not rows.is_cached
    assert SparkSession.getActiveSession() is spark
    assert [row.whose for row in spark.table("tmp_view").collect()] == ["mine"]
    spark.catalog.dropTempView("tmp_view")
    docs_evaluator(rows, numbers, tmp_path, docs=False).evaluate(suite)
    assert not spark.catalog.tableExists("tmp_view")
