"""One rule, one answer: both evaluators on values at the edges of every type, and random rules."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark.model import expectations as expect
from rivermark.model.errors import DeclarationError
from rivermark.model.pattern import in_both
from rivermark.model.question import NoRowsWhere
from rivermark.model.rule import Expectation, SuiteRule
from rivermark.model.suite import Suite
from rivermark.quality.column_kind import kinds_of_arrow, kinds_of_spark
from rivermark.quality.condition_sql import sql_of_condition
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator, suite_connection
from rivermark.quality.errors import SuiteDoesNotFit
from rivermark.quality.gx.evaluator import SparkEvaluator
from rivermark.quality.result import SuiteResult
from rivermark.quality.time_expectations import no_overlap, usual_rows
from tests.unit.quality.edges import EDGES, TEXTS, edge_rows
from tests.unit.quality.random_rules import random_condition, random_pattern

pytestmark = pytest.mark.spark

ROUNDS = int(os.environ.get("RIVERMARK_PARITY_ROUNDS", "1"))
"""Rounds of random rules, of 60 conditions and 60 patterns each."""

ANY = 1.0
assert EDGES.days is not None

EXPECTATIONS: tuple[Expectation, ...] = (
    expect.columns_match(EDGES.schema),
    *(expect.unique(name, allow_null_share=ANY) for name in ("double", "text", "at", "finest")),
    expect.unique(("single", "double"), allow_null_share=ANY),
    expect.unique(("a b", "end"), allow_null_share=ANY),
    expect.between("long", 0, 2**53, allow_null_share=ANY),
    expect.between("long", -(2**53), 2**53 + 1, high_excluded=True, allow_null_share=ANY),
    expect.between("long", 0.5, Decimal("2.5"), high_excluded=True, allow_null_share=ANY),
    expect.between("long", -(10**30), 10**30, allow_null_share=ANY),
    expect.between("int", 16777217, allow_null_share=ANY),
    expect.between("tiny", 0, 1_000, allow_null_share=ANY),
    expect.between("money", 0.1, Decimal("9999999999.985"), allow_null_share=ANY),
    expect.between("fine", None, Decimal("0.1"), allow_null_share=ANY),
    expect.between("fine", Decimal("0.1"), 10**30, high_excluded=True, allow_null_share=ANY),
    expect.between("finest", None, 100, allow_null_share=ANY),
    expect.between("finest", Decimal("1e-37"), Decimal("9." + "9" * 37), allow_null_share=ANY),
    expect.between("single", 0, allow_null_share=ANY),
    expect.between("single", None, Decimal("0.1"), allow_null_share=ANY),
    expect.between("single", 16777217, allow_null_share=ANY),
    expect.between("double", 0, allow_null_share=ANY),
    expect.between("double", None, 0.1, allow_null_share=ANY),
    expect.between("double", -1e308, 1e308, high_excluded=True, allow_null_share=ANY),
    expect.between("double", None, 2**53, high_excluded=True, allow_null_share=ANY),
    expect.between("day", "1500-01-01", "2019-03-01", allow_null_share=ANY),
    expect.between("at", "2019-03-01 12:00:00", "9999-12-31 23:59:59.999999", allow_null_share=ANY),
    expect.between("at", "0001-01-01", "1582-10-14", allow_null_share=ANY),
    expect.between("later", high="2019-03-01 12:00:00.000001", high_excluded=True),
    expect.between("end", 0, 2, allow_null_share=ANY),
    expect.between("Größe", 0, 2, allow_null_share=ANY),
    expect.in_set("long", [0, 2**53, 2**63 - 1, 10**30], allow_null_share=ANY),
    expect.in_set("tiny", [1, 300], allow_null_share=ANY),
    expect.in_set("money", [1, 10**11], allow_null_share=ANY),
    expect.in_set("finest", [0, 10_000_000_000], allow_null_share=ANY),
    expect.in_set("single", [0, 16777216, 16777217], allow_null_share=ANY),
    expect.in_set("double", [*range(12), 2**53, 2**53 + 1], allow_null_share=ANY),
    expect.in_set("text", ["", "a\rb", "\u212a", "it's", "\\"], allow_null_share=ANY),
    expect.in_set("a b", ["a", "b"], allow_null_share=ANY),
    expect.in_set("truth", [True], allow_null_share=ANY),
    expect.matches_regex("text", "a.b", allow_null_share=ANY),
    expect.matches_regex("text", "CARD.", allow_null_share=ANY),
    expect.matches_regex("text", r"a\sb", allow_null_share=ANY),
    expect.matches_regex("text", "(?i)[\u00e4k]", allow_null_share=ANY),
    expect.matches_regex("text", "^[A-Za-z]*$", mostly=0.2, allow_null_share=ANY),
    expect.pair_ordered("tiny", "long", allow_null_share=ANY),
    expect.pair_ordered("int", "long", strictly=True, allow_null_share=ANY),
    expect.pair_ordered("money", "int", allow_null_share=ANY),
    expect.pair_ordered("single", "double", allow_null_share=ANY),
    expect.pair_ordered("double", "single", strictly=True, allow_null_share=ANY),
    expect.pair_ordered("at", "later", allow_null_share=ANY),
    expect.pair_ordered("local", "local", strictly=True, allow_null_share=ANY),
    expect.pair_ordered("end", "limit", allow_null_share=ANY),
    expect.no_rows_where("`end` > limit AND `a b` = 'it''s' OR text = 'it''s'", name="words"),
    expect.no_rows_where("long / `end` > 1 AND double > 0", name="a division", at_most=5),
    expect.no_rows_from(
        "SELECT `end`, count(*) AS n FROM {batch} GROUP BY `end` ORDER BY n DESC", name="a query"
    ),
    no_overlap("limit", start="at", end="later"),
    no_overlap("window", start="end", end="limit"),
    usual_rows(EDGES.days),
    # Neither can evaluate these.
    expect.between("tiny", 1_000, allow_null_share=ANY),
    expect.between("local", "2019-03-01", allow_null_share=ANY),
    expect.in_set("tiny", [300], allow_null_share=ANY),
    expect.pair_ordered("double", "long", allow_null_share=ANY),
    expect.pair_ordered("text", "text", allow_null_share=ANY),
    expect.no_rows_where("text > 5", name="text beside a number"),
)


def suites(may_be_empty: bool = False) -> list[Suite]:
    """All expectations in few suites: rules of one name are kept apart."""
    chosen: list[Suite] = []
    for expectation in EXPECTATIONS:
        for place, suite in enumerate(chosen):
            try:
                more = (*suite.expectations, expectation)
                chosen[place] = Suite(EDGES.name, more, may_be_empty=may_be_empty)
            except DeclarationError:
                continue
            break
        else:
            chosen.append(Suite(EDGES.name, (expectation,), may_be_empty=may_be_empty))
    return chosen


def outcomes(result: SuiteResult) -> dict[str, tuple[object, ...]]:
    return {
        r.name: (r.passed, r.error is None, r.unexpected_count, r.evaluated_count)
        for r in result.results
    }


@pytest.fixture(scope="module")
def frame(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(edge_rows(), EDGES.schema).cache()


# Short: every kind of rule in test_evaluators_agree.py.
@pytest.mark.long
@pytest.mark.parametrize("kept", ["no row", "all rows", "rows without values"])
def test_n060_n061_n077_both_evaluators_have_one_answer(
    spark: SparkSession, tmp_path: Path, kept: str
) -> None:
    rows = edge_rows()
    if kept == "no row":
        rows = rows.slice(0, 0)
    elif kept == "rows without values":
        rows = pa.Table.from_pylist([dict.fromkeys(rows.column_names)] * 3, rows.schema)
    frame = spark.createDataFrame(rows, EDGES.schema)
    # No examples are fetched of personal columns: a job for each rule that failed.
    gx = SparkEvaluator(
        frame=frame,
        table=EDGES.name,
        version=0,
        docs_root=tmp_path,
        docs=False,
        personal=rows.column_names,
    )

    for suite in suites(may_be_empty=kept == "no row"):
        in_duckdb = outcomes(DuckDbEvaluator(rows, EDGES, 0).evaluate(suite))
        on_spark = outcomes(gx.evaluate(suite))
        assert {n: (o, on_spark[n]) for n, o in in_duckdb.items() if o != on_spark[n]} == {}


def fitting(conditions: Sequence[str]) -> list[SuiteRule]:
    """The rules whose types meet; the rest is refused by both."""
    chosen = []
    for place, condition in enumerate(conditions):
        [rule] = expect.no_rows_where(condition, name=f"{place}: {condition}")
        try:
            sql_of_condition(rule, kinds_of_spark(EDGES.schema), "spark")
        except SuiteDoesNotFit:
            with pytest.raises(SuiteDoesNotFit):
                sql_of_condition(rule, kinds_of_arrow(edge_rows(1).schema), "duckdb")
            continue
        chosen.append(rule)
    return chosen


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_n060_random_conditions_have_one_answer(frame: DataFrame, seed: int) -> None:
    chance = random.Random(seed)
    rules = fitting([random_condition(chance) for _ in range(150)])[:60]
    rows = edge_rows()

    spark = [F.expr(sql_of_condition(r, kinds_of_spark(frame.schema), "spark")) for r in rules]
    counted = frame.select(*(F.count_if(c) for c in spark)).first()
    duckdb = [sql_of_condition(r, kinds_of_arrow(rows.schema), "duckdb") for r in rules]
    with suite_connection({"batch": rows}) as duck:
        listed = ", ".join(f"count(*) FILTER (WHERE {c})" for c in duckdb)
        in_duckdb = duck.execute(f"SELECT {listed} FROM batch").fetchone()  # noqa: S608

    assert len(rules) >= 40
    assert counted is not None
    assert in_duckdb is not None
    differing = {
        rule.name: (a, b)
        for rule, a, b in zip(rules, counted, in_duckdb, strict=True)
        if a != b and isinstance(rule.question, NoRowsWhere)
    }
    assert differing == {}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_n060_random_patterns_have_one_answer(spark: SparkSession, seed: int) -> None:
    chance = random.Random(seed)
    patterns = [random_pattern(chance) for _ in range(60)]
    texts = [*TEXTS, *("".join(chance.choices("ab \n\rk\u212aé0_", k=3)) for _ in range(60))]
    frame = spark.createDataFrame([(text,) for text in texts], "text string")

    matched = [F.col("text").rlike(in_both(pattern)).cast("int") for pattern in patterns]
    on_spark = frame.select(F.concat(*matched)).collect()
    with suite_connection({"batch": pa.table({"text": texts})}) as duck:
        listed = " || ".join("regexp_matches(text, ?)::INT" for _ in patterns)
        written = [in_both(pattern) for pattern in patterns]
        in_duckdb = duck.execute(f"SELECT {listed} FROM batch", written).fetchall()  # noqa: S608

    assert any("1" in row[0] for row in in_duckdb)
    differing = [
        (text, pattern)
        for text, a, b in zip(texts, on_spark, in_duckdb, strict=True)
        for pattern, x, y in zip(patterns, a[0], b[0], strict=True)
        if x != y
    ]
    assert differing == []


def test_examples_that_cannot_be_read_change_no_result(spark: SparkSession, tmp_path: Path) -> None:
    # In Python no year follows 9999.
    frame = spark.sql("SELECT timestamp_micros(2305843009213693952) AS at, -1 AS n")
    suite = Suite(
        EDGES.name,
        (
            expect.between("at", "2019-03-01", "2020-03-01"),
            expect.between("n", 0),
            expect.no_rows_where("n < 0", name="none below 0"),
        ),
    )

    result = SparkEvaluator(
        frame=frame, table=EDGES.name, version=0, docs_root=tmp_path, docs=False
    ).evaluate(suite)

    assert [(r.unexpected_count, r.error, r.example_texts) for r in result.failures] == [
        (1, None, ()),
        (1, None, ("-1",)),
        (1, None, ()),
    ]
