"""Judging without a JVM: days, bad rows, empty ones, times as times, and usual numbers."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import (
    DateType,
    DecimalType,
    LongType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark import Daily, Table
from rivermark.model import expectations as expect
from rivermark.model.rule import Expectation, SuiteRule
from rivermark.model.suite import Suite
from rivermark.monitor.dashboard.failing_rows import draw
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.errors import CheckCrashed, SuiteDoesNotFit
from rivermark.quality.failing_rows import Evidence, evidence_of
from rivermark.quality.time_expectations import no_overlap, usual_rows
from tests.unit.quality.planted import arrow_schema
from tests.unit.quality.test_publish_gate import NINE, TIPS, tips

MONDAY = date(2026, 3, 2)
TUESDAY = date(2026, 3, 3)
IN_RANGE = Suite("taxi/tips", (expect.between("tip", 0, 100), expect.not_null("driver")))
SOME = tips((1, 5), (2, -1, "Ada"), (3, 7, "D1", 20), (4, 200, "Bob", 20), (5, 300, "Bob", 20))


def rule_of(expectation: Expectation) -> SuiteRule:
    return expectation[0]


def test_only_the_rows_of_the_day_are_judged() -> None:
    monday = DuckDbEvaluator(SOME, TIPS, 3).evaluate(IN_RANGE, MONDAY)
    tuesday = DuckDbEvaluator(SOME, TIPS, 3).evaluate(IN_RANGE, TUESDAY)

    assert [(r.rows, r.failures[0].observed) for r in (monday, tuesday)] == [
        (2, "1 of 2 do not (50 %), 1 do"),
        (3, "2 of 3 do not (66.7 %), 1 do"),
    ]


def test_keys_are_compared_with_all_days_and_told_on_each() -> None:
    rows = tips((1, 5), (1, 5, "D1", 20), (2, 5))
    suite = Suite("taxi/tips", (expect.unique("ride_id"),))

    counts = [
        DuckDbEvaluator(rows, TIPS, 0).evaluate(suite, day).failures[0].unexpected_count
        for day in (MONDAY, TUESDAY)
    ]

    assert counts == [1, 1]


def test_b078_a_day_without_rows_says_so_and_does_not_pass() -> None:
    result = DuckDbEvaluator(SOME, TIPS, 3).evaluate(IN_RANGE, date(2026, 3, 4))

    assert not result.passed
    assert {r.observed for r in result.results} == {"0 rows", "0 rows evaluated"}
    assert not any(r.passed for r in result.results)


@pytest.mark.parametrize("low", ["2019-03-01 00:00:00", datetime(2019, 3, 1, tzinfo=UTC)])
def test_b081_limits_of_time_are_compared_as_times(low: str | datetime) -> None:
    at = [datetime(2019, 3, 1, tzinfo=UTC), datetime(2019, 4, 12, 22, 20, 7, tzinfo=UTC)]
    rows = pa.table({"at": pa.array(at, pa.timestamp("us", "UTC"))})
    march = expect.between("at", low, "2019-04-01 00:00:00", high_excluded=True)

    result = DuckDbEvaluator(rows, TIPS, 0).evaluate(Suite("taxi/tips", (march,)))

    assert [(r.unexpected_count, r.evaluated_count) for r in result.failures] == [(1, 2)]


def test_b081_money_is_compared_as_money() -> None:
    rule = rule_of(expect.between("tip", Decimal("9.5"), 100))
    evaluator = DuckDbEvaluator(tips((1, 10), (2, "9.49"), (3, "100.01")), TIPS, 0)
    found = evaluator.failing_rows(rule)

    assert [row[0] for row in found.rows] == [2, 3], "as text 10 lies before 9.5"


@pytest.mark.parametrize(
    "rule",
    [
        expect.pair_ordered("said_start", "said_end"),
        expect.pair_ordered("said_start", "ride"),
        expect.in_set("said_start", (9, 10)),
        expect.in_set("ride", ("9", "10")),
        expect.matches_regex("ride", "[0-9]+"),
        expect.between("said_start", 0, 24),
    ],
    ids=lambda rule: rule[0].name,
)
def test_b081_text_is_never_compared_with_numbers_or_as_if_it_were_some(
    rule: tuple[SuiteRule, ...],
) -> None:
    # As text 9:00 comes after 10:00, so that the first rule would find the only right row wrong.
    rows = pa.table({"ride": [1], "said_start": ["9:00"], "said_end": ["10:00"]})

    evaluator = DuckDbEvaluator(rows, TIPS, 0)
    with pytest.raises(SuiteDoesNotFit, match=r"no order|no such"):
        evaluator.failing_rows(rule[0])


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("driver > 5", "Cannot compare values of type VARCHAR and type INTEGER_LITERAL"),
        ("nowhere > 5", "there is no column 'nowhere'"),
    ],
)
def test_n061_whatever_cannot_be_evaluated_names_suite_and_rule(
    condition: str, reason: str
) -> None:
    evaluator = DuckDbEvaluator(SOME, TIPS, 0)
    rule = rule_of(expect.no_rows_where(condition, name="the rule"))
    [*_, answer] = evaluator.evaluate(Suite("taxi/tips", ((rule,),))).results

    named = "suite 'taxi/tips', rule 'the rule': "
    assert str(answer.error).startswith(named + reason)
    assert answer.observed == f"could not be evaluated: {answer.error}"
    for ask in (evaluator.failing_rows, evaluator.failures_by_day):
        with pytest.raises(SuiteDoesNotFit) as refused:
            ask(rule)
        assert str(refused.value).startswith(named + reason)
    [crashing] = expect.no_rows_from("SELECT nowhere FROM {batch}", name="a query")
    with pytest.raises(CheckCrashed, match="suite 'taxi/tips', rule 'a query' could not be"):
        evaluator.failing_rows(crashing)


def test_failing_rows_of_days_that_python_does_not_have_are_shown_and_counted() -> None:
    day = Table(
        name="test/days",
        schema=StructType([StructField("id", LongType()), StructField("day", DateType())]),
        description="Days.",
        days=Daily("day", MONDAY),
    )
    after_9999 = pa.array([5_000_000, 20_514], pa.int32()).cast(pa.date32())
    rows = pa.table({"id": [1, 2], "day": after_9999})
    [rule] = expect.no_rows_where("id > 0", name="no row")

    evidence = evidence_of(rows, day, [rule], version=0)

    assert evidence.by_day == {"no row": {date(2026, 3, 2): 1}}
    [failing] = evidence.failing
    assert failing.count == 2
    assert evidence.days_of(failing) == [("2026-03-02", 1), ("no day", 1)]
    assert evidence.days_of(failing, 0) == [("earlier", 1), ("no day", 1)]
    assert [len(failing.rows) for failing in evidence.failing] == [2]


def test_the_rows_behind_a_verdict_are_counted_by_day_and_hide_what_is_personal() -> None:
    rule = rule_of(expect.between("tip", 0, 100))
    evidence = evidence_of(SOME, TIPS, [rule], version=3)

    assert evidence.by_day == {rule.name: {MONDAY: 1, TUESDAY: 2}}
    [found] = evidence.failing
    assert found.count == 3
    assert found.columns == ("ride_id", "at", "tip")
    assert [row[0] for row in found.rows] == [2, 4, 5]
    assert evidence.command == (
        'rivermark show taxi/tips --bad "tip lies from 0 to 100" --version 3'
    )


def test_the_page_of_bad_rows_names_days_and_hides_what_is_personal(tmp_path: Path) -> None:
    evidence: Evidence = evidence_of(
        SOME,
        TIPS,
        [
            rule_of(expect.between("tip", 0, 100)),
            rule_of(expect.matches_regex("driver", r"D\d+")),
            *expect.no_rows_from(
                "SELECT driver AS who, tip FROM {batch} WHERE tip > 100", name="no large tips"
            ),
        ],
        version=3,
    )

    page = draw(evidence)

    assert "Ada" not in page
    assert "Bob" not in page
    assert "Left out as personal: driver" in page
    assert "200.00" in page
    assert "2026-03-03" in page
    assert page.count("<script") == 1, "that of the page itself"


def test_values_and_names_on_the_page_of_failing_rows_stay_text() -> None:
    hostile = '"><script>alert(1)</script>'
    [rule] = expect.no_rows_where("tip > 4", name=hostile)

    page = draw(evidence_of(tips((1, 5, hostile)), TIPS, [rule], version=3, personal=True))

    assert page.count("<script") == 1, "that of the page itself"
    assert page.count("&lt;script&gt;alert(1)") > 3


@pytest.mark.parametrize("day", [None, date(2026, 3, 2)])
def test_b080_a_rule_that_cannot_be_evaluated_has_failed_beside_the_others(
    day: date | None,
) -> None:
    suite = Suite(
        "taxi/tips",
        (
            expect.no_rows_from(
                "SELECT * FROM {batch} WHERE CAST(driver AS DOUBLE) > 1",
                name="cast",
                severity="info",
            ),
            expect.between("nowhere", 0),
            expect.between("tip", 0, 4),
            expect.no_rows_from("SELECT nothing FROM {batch}", name="query"),
            expect.not_null("ride_id"),
        ),
    )

    result = DuckDbEvaluator(SOME, TIPS, 0).evaluate(suite, day)

    answers = {r.name: r for r in result.results}
    assert [*answers] == [rule.name for rule in suite.rules]
    errors = {name: r.error for name, r in answers.items() if r.error is not None}
    assert errors.keys() == {"cast", "nowhere is at least 0", "nowhere is given", "query"}
    assert "no column nowhere" in str(errors["nowhere is at least 0"])
    for name in errors:
        assert answers[name].observed == f"could not be evaluated: {errors[name]}"
        assert not answers[name].passed
    assert answers["ride_id is given"].passed
    assert answers["tip lies from 0 to 4"].error is None
    assert answers["tip lies from 0 to 4"].evaluated_count
    assert not result.passed
    assert result.severity == "critical", "nothing is known, however mild the rule is"
    assert "Ada" not in str(result), "DuckDB quotes the value, of a column that is personal"


COUNTED = Table(
    name="taxi/counted",
    schema=StructType([StructField("at", TimestampType())]),
    description="Events.",
    days=Daily("at", date(2026, 1, 1), "America/New_York"),
)


def unusual(counts: dict[date, int]) -> list[tuple[date, int, float]]:
    """The days that the profile finds unusual, from so many rows a day at noon in New York."""
    at = [
        datetime(day.year, day.month, day.day, 17, tzinfo=UTC)
        for day, n in counts.items()
        for _ in range(n)
    ]
    rows = pa.table({"at": pa.array(at, pa.timestamp("us", "UTC"))})
    assert COUNTED.days is not None
    evaluator = DuckDbEvaluator(rows, COUNTED, 0)
    found = evaluator.failing_rows(rule_of(usual_rows(COUNTED.days)))
    return sorted(found.rows)


def days_from(first: date, counts: Iterable[int]) -> dict[date, int]:
    return {first + timedelta(days=n): count for n, count in enumerate(counts)}


WEEK = (100, 100, 100, 100, 180, 120, 40)
"""Monday to Sunday."""


def test_a_quiet_sunday_is_usual_and_a_quiet_friday_is_not() -> None:
    counts = days_from(MONDAY, WEEK * 6)
    friday = MONDAY + timedelta(days=4 * 7 + 4)
    assert unusual(counts) == []

    assert unusual(counts | {friday: 40}) == [(friday, 40, 180.0)]
    assert unusual({day: n for day, n in counts.items() if day != friday}) == [(friday, 0, 180.0)]


def test_one_odd_day_does_not_move_what_is_usual() -> None:
    counts = days_from(MONDAY, WEEK * 8) | {MONDAY + timedelta(days=21): 5_000}

    assert [day for day, *_ in unusual(counts)] == [MONDAY + timedelta(days=21)]


def test_with_few_days_only_an_empty_one_is_told() -> None:
    assert unusual(days_from(MONDAY, (100, 100, 100, 60, 40, 180, 100))) == []
    assert unusual(days_from(MONDAY, (100, 100, 100, 3, 100))) == [
        (MONDAY + timedelta(days=3), 3, 100.0)
    ]


def test_the_newest_day_may_grow_and_a_stray_date_is_not_taken_for_it() -> None:
    counts = days_from(MONDAY, (*WEEK * 4, 25)) | {date(2090, 12, 31): 1, date(2002, 1, 1): 1}

    assert unusual(counts) == []


WINDOWS = Table(
    name="taxi/windows",
    schema=StructType(
        [
            StructField("zone", LongType()),
            StructField("window_start", TimestampType()),
            StructField("window_end", TimestampType()),
            StructField("tips", DecimalType(12, 2)),
        ]
    ),
    description="Windows.",
)


def test_windows_of_one_key_that_overlap_are_found() -> None:
    hour = timedelta(hours=1)
    rows = [
        {"zone": zone, "window_start": NINE + n * hour, "window_end": NINE + (n + 1) * hour}
        for zone, n in ((1, 0), (1, 1), (2, 0), (2, 0.5))
    ]
    table = pa.Table.from_pylist(rows, schema=arrow_schema(WINDOWS.schema))
    evaluator = DuckDbEvaluator(table, WINDOWS, 0)
    found = evaluator.failing_rows(rule_of(no_overlap("zone")))

    assert [row[0] for row in found.rows] == [2]
