"""Suites of Great Expectations become ours where there is an equal, else stay as they are."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from assets.topology import TOPOLOGY
from rivermark.model import expectations as expect
from rivermark.model.errors import DeclarationError
from rivermark.model.limit import Limit
from rivermark.model.question import Between, OfGreatExpectations, columns_of
from rivermark.model.rule import SuiteRule
from rivermark.model.suite import Suite, check_columns
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.exported_suite import to_great_expectations
from rivermark.quality.imported_suite import from_great_expectations
from rivermark.quality.suites import suites_of

FARES = Table(
    name="test/fares",
    schema="ride long, fare decimal(8,2), begun timestamp, ended timestamp, kind string",
    description="Fares.",
)


def expectation(kind: str, severity: str = "critical", **kwargs: Any) -> dict[str, Any]:
    return {"type": kind, "kwargs": kwargs, "meta": {}, "severity": severity}


def imported(*expectations: dict[str, Any]) -> list[SuiteRule]:
    suite = {"name": "fares", "expectations": list(expectations)}
    return [rule for each in from_great_expectations(suite) for rule in each]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (
            expectation(
                "expect_column_values_to_be_between", column="fare", min_value=0.0, max_value=9.5
            ),
            expect.between("fare", 0.0, 9.5),
        ),
        (
            expectation(
                "expect_column_values_to_be_between",
                column="begun",
                min_value="2026-03-01T00:00:00",
                max_value="2026-04-01T00:00:00",
                strict_max=True,
                mostly=0.9,
            ),
            expect.between(
                "begun", "2026-03-01 00:00", "2026-04-01 00:00", high_excluded=True, mostly=0.9
            ),
        ),
        (
            expectation("expect_column_values_to_not_be_null", column="ride"),
            expect.not_null("ride"),
        ),
        (expectation("expect_column_values_to_be_unique", column="ride"), expect.unique("ride")),
        (
            expectation("expect_column_values_to_be_in_set", column="kind", value_set=["a", "b"]),
            expect.in_set("kind", ["a", "b"]),
        ),
        (
            expectation(
                "expect_column_pair_values_a_to_be_greater_than_b",
                column_A="ended",
                column_B="begun",
                or_equal=True,
                ignore_row_if="either_value_is_missing",
            ),
            expect.pair_ordered("begun", "ended"),
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_an_expectation_with_an_equal_becomes_it(theirs: dict[str, Any], ours: Any) -> None:
    assert imported(theirs) == [ours[0]]


@pytest.mark.parametrize(
    "theirs",
    [
        expectation("expect_column_mean_to_be_between", column="fare", min_value=1, max_value=2),
        # Found anywhere in the text, where ours match all of it.
        expectation("expect_column_values_to_match_regex", column="kind", regex="^a"),
        expectation("expect_column_values_to_be_between", column="kind", min_value="a"),
        expectation(
            "expect_column_values_to_be_between", column="fare", min_value=0, strict_min=True
        ),
        expectation("expect_column_values_to_be_in_set", column="fare", value_set=[1.5, 2.5]),
        # Rows with one empty value are compared.
        expectation("expect_compound_columns_to_be_unique", column_list=["ride", "kind"]),
        expectation(
            "expect_column_pair_values_a_to_be_greater_than_b", column_A="ended", column_B="begun"
        ),
        expectation("expect_column_values_to_be_unique", column="ride", mostly=0.9),
        expectation("expect_column_values_to_not_be_null", column="ride", row_condition="fare > 0"),
        expectation(
            "unexpected_rows_expectation", unexpected_rows_query="SELECT pi() FROM {batch}"
        ),
        expectation("expect_fares_to_be_round", column="fare"),
    ],
    ids=lambda theirs: theirs["type"],
)
def test_any_other_stays_as_it_is(theirs: dict[str, Any]) -> None:
    [rule] = imported(theirs)

    assert isinstance(rule.question, OfGreatExpectations)
    assert (rule.question.type, rule.question.kwargs) == (theirs["type"], theirs["kwargs"])
    names = {v for k, v in theirs["kwargs"].items() if k in ("column", "column_A", "column_B")}
    assert set(columns_of(rule.question)) >= names


def test_names_severities_and_repeats_are_kept_apart() -> None:
    between: dict[str, Any] = {"column": "fare", "min_value": 0}
    rules = imported(
        expectation("expect_column_values_to_be_between", "warning", **between),
        expectation("expect_column_values_to_be_between", **between, mostly=0.5),
        {**expectation("expect_column_values_to_be_between", **between), "description": "paid"},
    )

    assert [(rule.name, rule.severity, rule.at_least) for rule in rules] == [
        ("fare is at least 0", "warning", 1.0),
        ("fare is at least 0 (2)", "critical", 0.5),
        ("paid", "critical", 1.0),
    ]
    assert all(isinstance(rule.question, Between) for rule in rules)


def test_what_only_great_expectations_evaluates_is_left_out_without_spark() -> None:
    rows = pa.table(
        {
            "ride": [1, 1],
            "fare": pa.array([None, None], pa.decimal128(8, 2)),
            "begun": pa.array([datetime(2026, 3, 1, tzinfo=UTC)] * 2),
            "ended": pa.array([datetime(2026, 3, 1, tzinfo=UTC)] * 2),
            "kind": ["a", "b"],
        }
    )
    suite = Suite(
        "test/fares",
        from_great_expectations(
            {
                "name": "fares",
                "expectations": [
                    expectation("expect_column_mean_to_be_between", column="fare", max_value=2),
                    expectation("expect_column_values_to_be_unique", column="ride"),
                ],
            }
        ),
    )

    results = DuckDbEvaluator(rows, FARES, 0).evaluate(suite).results

    assert {each.name: each.passed for each in results} == {
        "there are rows": True,
        "ride occur once": False,
    }


@pytest.mark.parametrize(
    "arguments", [{"column": "fair"}, {"column": "fare", "row_condition": 'col("fair").notNull()'}]
)
def test_a_column_that_the_table_lacks_is_told_when_it_is_declared(
    arguments: dict[str, str],
) -> None:
    mean = expectation("expect_column_mean_to_be_between", **arguments, max_value=2)
    suite = Suite("test/fares", from_great_expectations({"name": "f", "expectations": [mean]}))

    with pytest.raises(DeclarationError, match="no column 'fair'; did you mean 'fare'"):
        check_columns(suite, FARES.name, FARES.schema)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting property name"),
        ("[]", "not a JSON object"),
        ('{"name": "x"}', "no list `expectations`"),
        ('{"expectations": [{"kwargs": {}}]}', "expectation 1 lacks its `type` or `kwargs`"),
        ('{"expectations": [{"type": "a", "kwargs": {}, "severity": "bad"}]}', "severity 'bad'"),
    ],
)
def test_a_file_that_holds_no_suite_is_refused_with_its_path(
    text: str, reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "suite.json"
    file.write_text(text)

    with pytest.raises(DeclarationError, match=reason) as refused:
        from_great_expectations(file)

    assert str(file) in str(refused.value)
    with pytest.raises(DeclarationError, match="No such file"):
        from_great_expectations(tmp_path / "none.json")


def test_every_suite_of_this_deployment_comes_back_from_its_json() -> None:
    """But patterns, conditions and queries, which have another form there."""
    compared = 0
    for stream in TOPOLOGY.streams:
        for table, suite in suites_of(stream):
            document = json.loads(json.dumps(to_great_expectations(suite, table.schema)))
            back = [rule for each in from_great_expectations(document) for rule in each]

            assert [(r.name, r.severity) for r in back] == [
                (r.name, r.severity) for r in suite.rules
            ]
            for rule, again in zip(suite.rules, back, strict=True):
                if not isinstance(again.question, OfGreatExpectations):
                    assert in_floats(again) == in_floats(rule), rule.name
                    compared += 1

    assert compared > 300


def in_floats(rule: SuiteRule) -> object:
    """The rule with limits as JSON holds them: decimals as floats, days as their midnight."""
    match rule.question:
        case Between(column, low, high, excluded):
            return (column, as_text(low), as_text(high), excluded, rule.at_least)
        case _:
            return (rule.question, rule.at_least)


def as_text(limit: Limit | None) -> str:
    if isinstance(limit, datetime):
        return limit.isoformat()
    if isinstance(limit, date):
        return datetime.combine(limit, time(), UTC).isoformat()
    return str(limit if limit is None else float(limit))
