"""What a suite says before it is run, and what it refuses to say."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from pyspark.sql.types import IntegerType, StructType

from rivermark.model import expectations as expect
from rivermark.model.errors import DeclarationError
from rivermark.model.question import Between, NotNull
from rivermark.model.rule import SuiteRule
from rivermark.model.suite import Suite
from rivermark.quality.suites import suites_of
from tests.unit.model.declared import ingest


def rules_of(suite: Suite) -> dict[str, SuiteRule]:
    return {rule.name: rule for rule in suite.rules}


def test_declaring_a_suite_imports_neither_great_expectations_nor_matplotlib() -> None:
    code = (
        "import sys; import rivermark.model.suite, rivermark.quality.gx.evaluator, "
        "rivermark.monitor.charts; "
        "sys.exit(bool({'great_expectations', 'matplotlib'} & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_every_suite_asks_first_whether_there_are_rows() -> None:
    suite = Suite("taxi/tips", (expect.not_null("driver"),))

    first = suite.rules[0]

    assert (first.name, first.bound) == ("there are rows", "at least 1 row")
    assert first.severity == "critical"


def test_a_suite_that_may_be_empty_still_counts_the_rows() -> None:
    suite = Suite("taxi/tips", (expect.not_null("driver"),), may_be_empty=True)

    assert (suite.rules[0].name, suite.rules[0].severity) == ("rows are counted", "info")


@pytest.mark.parametrize(
    "declared",
    [
        expect.between("n", 1, 6),
        expect.in_set("n", ["1", "6"]),
        expect.matches_regex("n", r"\d"),
        expect.unique("n"),
        expect.pair_ordered("n", "m"),
    ],
)
def test_a_rule_of_values_comes_with_a_limit_for_empty_ones(
    declared: tuple[SuiteRule, ...],
) -> None:
    given = [rule for rule in declared if isinstance(rule.question, NotNull)]

    assert given[0].question == NotNull("n")
    assert {rule.bound for rule in given} == {"none empty"}


def test_an_allowed_share_of_empty_values_is_the_limit_that_is_shown() -> None:
    inside, given = expect.between("n", 1, 6, allow_null_share=0.225)

    assert (inside.at_least, inside.bound) == (1.0, "all")
    assert (given.at_least, given.bound) == (0.775, "at most 22.5 % empty")


@pytest.mark.parametrize(
    "low",
    [
        "2019-03-01",
        "2019-03-01 00:00:00",
        "2019-03-01T00:00:00Z",
        "2019-02-28T19:00:00-05:00",
        datetime(2019, 3, 1, tzinfo=UTC),
        datetime(2019, 3, 1),  # noqa: DTZ001 - a time without zone is what is tested
    ],
)
def test_b081_text_and_times_declare_the_same_limit(low: str | datetime) -> None:
    rule = expect.between("pickup", low)[0]

    assert rule.question == Between("pickup", datetime(2019, 3, 1, tzinfo=UTC), None)
    assert rule.name == "pickup is at least 2019-03-01 00:00:00 UTC"


@pytest.mark.parametrize(
    ("low", "high", "why"),
    [
        ("10", "9 lives", "not an ISO time"),
        ("a", None, "not an ISO time"),
        (None, None, "at least one limit"),
        (6, 1, "is empty"),
        (date(2019, 3, 1), 7, "different types"),
        (date(2019, 3, 1), "2019-03-02", "different types"),
        (float("nan"), None, "neither a finite number"),
        (True, None, "`low` is True"),
    ],
)
def test_limits_that_could_not_be_compared_are_refused(low: object, high: object, why: str) -> None:
    with pytest.raises(DeclarationError, match=why):
        expect.between("n", low, high)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        (expect.between("tip", Decimal("0.10"), 5), "tip lies from 0.10 to 5"),
        (expect.between("tip", 0, 5, high_excluded=True), "tip lies from 0 to below 5"),
        (expect.between("tip", 0), "tip is at least 0"),
        (expect.between("tip", high=5), "tip is at most 5"),
        (
            expect.between("day", high=date(2019, 3, 1), high_excluded=True),
            "day is below 2019-03-01",
        ),
    ],
)
def test_a_range_is_named_in_words(rule: tuple[SuiteRule, ...], name: str) -> None:
    assert rule[0].name == name


def test_one_rule_stated_twice_is_asked_once_with_the_harder_severity() -> None:
    suite = Suite(
        "taxi/tips",
        (
            expect.between("tip", 0, 100, severity="warning"),
            expect.in_set("tip", [1, 2], severity="info"),
            expect.not_null("tip", severity="critical"),
        ),
    )

    assert [r.name for r in suite.rules].count("tip is given") == 1
    assert rules_of(suite)["tip is given"].severity == "critical"
    assert rules_of(suite)["tip lies from 0 to 100"].severity == "warning"


def test_two_limits_for_one_rule_are_refused() -> None:
    with pytest.raises(DeclarationError, match="two rules 'tip is given'"):
        Suite("taxi/tips", (expect.between("tip", 0, 1), expect.not_null("tip", mostly=0.9)))


@pytest.mark.parametrize("name", ["tips", "taxi/../tips", "Taxi/tips", "taxi.tips"])
def test_a_suite_needs_a_name_that_can_be_a_path(name: str) -> None:
    with pytest.raises(DeclarationError, match="expected like"):
        Suite(name, (expect.not_null("tip"),))


def test_a_suite_that_expects_nothing_is_refused() -> None:
    with pytest.raises(DeclarationError, match="expects nothing"):
        Suite("taxi/tips", ())


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_lies_between_none_and_all(share: float) -> None:
    with pytest.raises(DeclarationError, match="between 0 and 1"):
        expect.not_null("tip", mostly=share)


def test_an_unknown_severity_is_refused() -> None:
    with pytest.raises(DeclarationError, match="'fatal'; expected 'critical', 'warning' or 'info'"):
        expect.not_null("tip", severity="fatal")  # type: ignore[arg-type]


def test_a_query_must_read_the_table_that_is_checked() -> None:
    with pytest.raises(DeclarationError, match="does not read"):
        expect.no_rows_from("SELECT * FROM tips", name="none")


def test_columns_come_from_a_schema_or_one_by_one() -> None:
    schema = StructType().add("a", IntegerType()).add("b", IntegerType())

    assert expect.columns_match(schema) == expect.columns_match("a", "b")


def test_a_suite_has_the_name_of_its_table_unless_it_is_given() -> None:
    orders = ingest("test/orders", suite=Suite(expectations=(expect.between("id", 0),)))
    named = ingest("test/orders", suite=Suite("test/own", (expect.between("id", 0),)))

    assert [suite.name for _, suite in suites_of(orders)] == ["test/orders"]
    assert [suite.name for _, suite in suites_of(named)] == ["test/own"]
