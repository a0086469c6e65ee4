"""Limits, values and conditions are exact by the columns' types, or refused by the rule's name."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from rivermark.model import expectations as expect
from rivermark.model.rule import Expectation
from rivermark.model.suite import Suite
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.time_expectations import usual_rows
from tests.unit.quality.edges import ARROW, EDGES, edge_rows

ROWS = edge_rows()


def failing(expectation: Expectation, rows: pa.Table = ROWS) -> tuple[int | None, str | None]:
    suite = Suite(EDGES.name, (expectation,))
    result = DuckDbEvaluator(rows, EDGES, 0).evaluate(suite)
    [answer] = [r for r in result.results if r.name == expectation[0].name]
    return answer.unexpected_count, answer.error


def column(name: str, *values: Any) -> pa.Table:
    rows = [{f.name: None for f in ARROW} | {name: value} for value in values]
    return pa.Table.from_pylist(rows, schema=ARROW)


@pytest.mark.parametrize(
    ("name", "low", "high", "inside", "outside"),
    [
        ("long", None, 2**53, [2**53], [2**53 + 1]),
        ("long", 2**53 + 1, None, [2**53 + 1], [2**53]),
        ("long", 0.5, Decimal("2.5"), [1, 2], [0, 3]),
        ("long", -(10**30), 10**30, [-(2**63), 2**63 - 1], []),
        ("tiny", 0, 1_000, [127], [-1]),
        ("money", 0.1, 0.3, [Decimal("0.10"), Decimal("0.30")], [Decimal("0.09"), Decimal("0.31")]),
        ("fine", None, Decimal("0.1"), [Decimal("0.1")], [Decimal("0.10000000000000000001")]),
        ("finest", None, 100, [Decimal("9.9999999999999999999999999999999999999")], []),
        ("single", None, Decimal("0.1"), [0.0], [0.1]),
        ("single", 16777217, None, [16777218.0], [16777216.0]),
        ("double", 0, None, [float("inf"), 0.0, -0.0], [float("nan"), -1e-300]),
        ("double", None, 0.1, [0.1, float("-inf")], [float("inf"), float("nan")]),
    ],
)
def test_n060_limits_are_exact(
    name: str, low: Any, high: Any, inside: list[Any], outside: list[Any]
) -> None:
    rule = expect.between(name, low, high, allow_null_share=1.0)

    assert failing(rule, column(name, *inside, None)) == (0, None)
    assert failing(rule, column(name, *inside, *outside)) == (len(outside), None)


def test_a_range_that_excludes_its_end_is_exact_between_two_values() -> None:
    below = expect.between("long", high=2.5, high_excluded=True, allow_null_share=1.0)
    whole = expect.between("long", high=2, high_excluded=True, allow_null_share=1.0)

    assert failing(below, column("long", 1, 2, 3)) == (1, None)
    assert failing(whole, column("long", 1, 2, 3)) == (2, None)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (expect.between("tiny", 1_000), "no value of int8 lies in this range"),
        (expect.between("finest", 100), "no value of decimal128(38, 37) lies in this range"),
        (expect.between("double", 2**53 + 1), f"no double is exactly {2**53 + 1}"),
        (expect.between("double", 10**400), "no double is exactly"),
        (expect.between("text", 1), "string has no order with 1"),
        (expect.between("local", "2019-03-01"), "has no order with"),
        (expect.between("at", date(2019, 3, 1)), "has no order with"),
        (expect.in_set("tiny", [300, 1_000]), "holds no of these values"),
        (expect.in_set("text", [1]), "holds no such value as 1"),
        (expect.matches_regex("long", "1"), "holds no such value as a text"),
        (expect.pair_ordered("double", "long"), "no order of numbers or times"),
        (expect.pair_ordered("fine", "finest"), "no order of numbers or times"),
        (expect.pair_ordered("truth", "truth"), "no order of numbers or times"),
        (expect.not_null("nowhere"), "the table has no column nowhere; it has long, "),
    ],
    ids=lambda value: value[0].name if isinstance(value, tuple) else "",
)
def test_n061_a_rule_that_does_not_fit_names_itself_and_the_type(
    rule: Expectation, why: str
) -> None:
    count, error = failing(rule)

    assert count is None
    assert error is not None
    assert error.startswith(f"suite 'test/edges', rule '{rule[0].name}': ")
    assert why in error


def of(condition: str) -> Expectation:
    return expect.no_rows_where(condition, name="the rule")


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        ("text > 5", "Cannot compare values of type VARCHAR and type INTEGER_LITERAL"),
        ("text = 5", "the text 'x' was tried: write TRY(...)"),
        ("CAST(text AS INT) > 1", "the text 'x' was tried: write TRY(...)"),
        ('"at" > 5', "Cannot compare values of type TIMESTAMP WITH TIME ZONE"),
        ("day = truth", "Unimplemented type for cast (BOOLEAN -> DATE)"),
        ("long", "it is no condition: it is BIGINT"),
        ("place > 1", "Cannot compare values of type"),
        ("len(long) = 1", "No function matches the given name and argument types"),
        ("nowhere = 1", "there is no column 'nowhere' (at character 1)"),
        ("place.nowhere = 1", 'Could not find key "nowhere" in struct'),
        ("text LIKE", "syntax error"),
        ("sum(long) > 1", "'sum' looks at several rows"),
        ("long IN (SELECT 1)", "a condition has no subquery"),
    ],
)
def test_n060_a_condition_whose_types_have_no_common_meaning_is_refused(
    condition: str, why: str
) -> None:
    count, error = failing(of(condition))

    assert count is None
    assert error is not None
    assert error.startswith("suite 'test/edges', rule 'the rule': ")
    assert why in error


@pytest.mark.parametrize(
    ("condition", "values", "count"),
    [
        ("long / 2 > 1", {"long": [2, 3, None]}, 2),
        ("1 / long > 1", {"long": [0, 2]}, 1),
        ("long % 2 = 1", {"long": [3, -3, 0]}, 1),
        ("abs(long::HUGEINT) > 9223372036854775807", {"long": [-(2**63), 2**63 - 1]}, 1),
        ("long + 1 > 9223372036854775807", {"long": [2**63 - 1, 0]}, 1),
        ("-(long::HUGEINT) = 9223372036854775808", {"long": [-(2**63)]}, 1),
        ("money * 3 = 0.3", {"money": [Decimal("0.10")]}, 1),
        ("text || 'b' = 'ab'", {"text": ["a", "b", None]}, 2),
        ("text = 'it''s'", {"text": ["it's", "its"]}, 1),
        ("text LIKE '_%' AND NOT text IN ('a', 'b')", {"text": ["a", "c", ""]}, 1),
        ("text IS NOT DISTINCT FROM 'a'", {"text": ["a", None]}, 1),
        ("coalesce(text = 'a', false)", {"text": ["a", None]}, 1),
        ("CASE WHEN truth THEN long ELSE tiny END IS NULL", {"truth": [True]}, 1),
        ("if(truth, 1, 2) = 2", {"truth": [True, False]}, 1),
        ("truth IS NOT TRUE", {"truth": [True, False, None]}, 2),
        ("greatest(long, 3) = 3 AND least(long, 3) < 3", {"long": [1, 5]}, 1),
        ('"end" > "limit"', {"end": [2]}, 1),
        ("\"a b\" = 'x' AND LONG IS NULL", {"a b": ["x", "y"]}, 1),
        ("place.lat BETWEEN 1 AND 2.5", {"place": [{"lat": 1.5}, {"lat": 3.0}]}, 1),
        ("len(items) <> 2", {"items": [[1, 2], [], None]}, 2),
        ("day >= DATE '2019-03-01'", {"day": [date(2019, 3, 1), date(1500, 1, 1)]}, 1),
        (
            "\"at\" <> TIMESTAMPTZ '2019-03-01 00:00Z' + INTERVAL 90 MINUTES",
            {"at": [datetime(2019, 3, 1, 1, 30, tzinfo=UTC), datetime(2019, 3, 1, tzinfo=UTC)]},
            1,
        ),
        ('"at" - "at" > INTERVAL 1 SECOND', {"at": [datetime(2019, 3, 1, tzinfo=UTC)]}, 0),
    ],
)
def test_a_condition_counts_the_rows_that_fulfil_it_or_may(
    condition: str, values: dict[str, list[Any]], count: int
) -> None:
    [(name, each)] = values.items()

    assert failing(of(condition), column(name, *each)) == (count, None)


def test_n077_an_empty_table_has_no_usual_days_and_no_values() -> None:
    assert EDGES.days is not None
    suite = Suite(EDGES.name, (usual_rows(EDGES.days), expect.between("long", 0)))
    result = DuckDbEvaluator(ROWS.slice(0, 0), EDGES, 0).evaluate(suite)

    assert {r.observed for r in result.results} == {"0 rows", "0 rows evaluated"}
    assert not any(r.passed for r in result.results)


def test_failing_rows_that_python_cannot_hold_are_shown_as_text() -> None:
    far = pa.table({"at": pa.array([2**61], pa.timestamp("us", "UTC")), "long": [-1]})
    [rule, _] = expect.between("long", 0)

    failing_rows = DuckDbEvaluator(far, EDGES, 0).failing_rows(rule)

    assert failing_rows.count == 1
    assert "75039-04-04" in str(failing_rows.rows)
