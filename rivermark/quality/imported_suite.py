"""A suite that a team has for Great Expectations, as expectations of ours.

The JSON is that of `ExpectationSuite.to_json_dict`. Great Expectations itself is not imported.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Protocol

from rivermark.model import expectations as expect
from rivermark.model.check import HARDEST_FIRST
from rivermark.model.errors import DeclarationError
from rivermark.model.question import OfGreatExpectations
from rivermark.model.rule import Expectation, SuiteRule

RULE_KEY: Final = "rule"
"""Where an expectation's metadata names its rule."""
LIMITS: Final = frozenset({"min_value", "max_value", "strict_max"})
"""Arguments of a range that ours has too."""


class HasJson(Protocol):
    """An `ExpectationSuite`."""

    def to_json_dict(self) -> dict[str, Any]:
        """The suite as a JSON object."""
        ...


def from_great_expectations(
    suite: HasJson | Mapping[str, Any] | str | Path, *, module: str | None = None
) -> tuple[Expectation, ...]:
    """The expectations of a suite of Great Expectations, for the `expectations` of a `Suite`.

        Suite(expectations=(*from_great_expectations("suites/trips.json"), expect.unique("id")))

    An expectation that has an equal here becomes that rule, which every evaluator evaluates. Any
    other one, custom ones included, stays as it is and is evaluated by Great Expectations on Spark
    alone: `meets_expectations` and the page of its run show it; the gate of bounded runs, the
    checks by day and `rivermark checks` leave it out.

    A rule is named by the expectation's `description`, else by what it says.

    Args:
        suite: An `ExpectationSuite`, its JSON as a mapping, or the path of a file that holds it.
            Prefer the JSON: who imports Great Expectations beside a declaration pays seconds at
            each start, and a process that has no main file, as those that Dagster starts, may end.
        module: The module that defines the suite's custom expectations; it is imported when they
            are evaluated.

    Raises:
        DeclarationError: There is no such file, or it holds no suite.
    """
    where, document = _document(suite)
    listed = document.get("expectations")
    if not isinstance(listed, list) or not listed:
        raise DeclarationError(f"{where}: no list `expectations` with at least one in it")
    rules: dict[str, SuiteRule] = {}
    for place, each in enumerate(listed, 1):
        kwargs = each.get("kwargs") if isinstance(each, Mapping) else None
        if not isinstance(kwargs, Mapping) or not isinstance(each.get("type"), str):
            raise DeclarationError(f"{where}: expectation {place} lacks its `type` or `kwargs`")
        rule = _rule(where, each["type"], each, dict(kwargs), module)
        name, number = rule.name, 2
        while name in rules:
            name, number = f"{rule.name} ({number})", number + 1
        rules[name] = replace(rule, name=name)
    return tuple((rule,) for rule in rules.values())


def _document(suite: HasJson | Mapping[str, Any] | str | Path) -> tuple[str, Mapping[str, Any]]:
    if isinstance(suite, str | Path):
        try:
            document = json.loads(Path(suite).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise DeclarationError(f"suite {suite}: {error}") from None
        if not isinstance(document, dict):
            raise DeclarationError(f"suite {suite}: not a JSON object")
        return f"suite {suite}", document
    document = suite if isinstance(suite, Mapping) else suite.to_json_dict()
    return f"suite {document.get('name')!r}", document


def _rule(
    where: str, kind: str, each: Mapping[str, Any], kwargs: dict[str, Any], module: str | None
) -> SuiteRule:
    severity = each.get("severity") or "critical"
    if severity not in HARDEST_FIRST:
        raise DeclarationError(f"{where}: {kind} has the unknown severity {severity!r}")
    for name in ("result_format", "catch_exceptions", "batch_id"):
        kwargs.pop(name, None)  # How it was once run, not what it asks.
    equal = _equal(kind, {name: value for name, value in kwargs.items() if value is not None})
    if equal is None:
        what = kind.removeprefix("expect_").replace("_", " ")
        arguments = json.dumps(kwargs, sort_keys=True, ensure_ascii=False)
        said = ", ".join(f"{name} {value}" for name, value in sorted(kwargs.items()))
        equal = SuiteRule(
            name=f"{what}: {said}",
            question=OfGreatExpectations(kind, arguments, module),
            severity=severity,
        )
    meta = each.get("meta") or {}
    name = meta.get(RULE_KEY) or each.get("description") or equal.name
    return replace(equal, name=str(name), severity=severity)


def _equal(kind: str, kwargs: dict[str, Any]) -> SuiteRule | None:
    """Our rule that asks the same, None where there is none."""
    mostly = kwargs.pop("mostly", 1.0)
    names = kwargs.keys()
    try:
        match kind:
            case "expect_column_values_to_not_be_null" if names == {"column"}:
                return expect.not_null(kwargs["column"], mostly=mostly)[0]
            case "expect_column_values_to_be_in_set" if names == {"column", "value_set"}:
                return expect.in_set(kwargs["column"], kwargs["value_set"], mostly=mostly)[0]
            case "expect_column_values_to_be_between" if names - LIMITS == {"column"}:
                low, high = kwargs.get("min_value"), kwargs.get("max_value")
                open_end = bool(kwargs.get("strict_max"))
                column = kwargs["column"]
                return expect.between(column, low, high, high_excluded=open_end, mostly=mostly)[0]
            case "expect_column_pair_values_a_to_be_greater_than_b" if (
                names - {"or_equal"} == {"column_A", "column_B", "ignore_row_if"}
                and kwargs["ignore_row_if"] == "either_value_is_missing"
            ):
                first, second = kwargs["column_B"], kwargs["column_A"]
                strictly = not kwargs.get("or_equal")
                return expect.pair_ordered(first, second, strictly=strictly, mostly=mostly)[0]
        if mostly != 1.0:
            return None
        match kind:
            case "expect_column_values_to_be_unique" if names == {"column"}:
                return expect.unique(kwargs["column"])[0]
            case "expect_compound_columns_to_be_unique" if (
                names == {"column_list", "ignore_row_if"}
                and kwargs["ignore_row_if"] == "any_value_is_missing"
            ):
                return expect.unique(kwargs["column_list"])[0]
            case "expect_table_row_count_to_be_between" if names <= {"min_value", "max_value"}:
                low, high = (_whole(kwargs.get(each)) for each in ("min_value", "max_value"))
                name = f"rows are {low} to {high}"
                return expect.row_count_between(low, high, name=name)[0]
            case "expect_table_row_count_to_equal" if names == {"value"} and isinstance(
                rows := kwargs["value"], int
            ):
                return expect.row_count_between(rows, rows, name=f"rows are {rows}")[0]
            case "expect_table_columns_to_match_set" if kwargs.get(
                "exact_match", True
            ) and names - {"exact_match"} == {"column_set"}:
                return expect.columns_match(*kwargs["column_set"])[0]
    except (DeclarationError, ValueError, TypeError):
        # Limits of another kind than ours: the expectation stays as it is.
        return None
    return None


def _whole(limit: float | None) -> int | None:
    if limit is not None and limit != int(limit):
        raise ValueError(limit)
    return None if limit is None else int(limit)
