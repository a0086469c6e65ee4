"""Results in the form of Great Expectations, as it stores and draws them.

Importing this module imports Great Expectations, which takes seconds.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import great_expectations.expectations as gxe
import pyarrow as pa
from great_expectations import __version__
from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from great_expectations.expectations.expectation import Expectation
from great_expectations.expectations.metadata_types import FailureSeverity
from great_expectations.expectations.registry import get_expectation_impl

from rivermark.model.check import CheckResult
from rivermark.model.question import (
    Columns,
    NoRowsFrom,
    NoRowsWhere,
    NotNull,
    OneOf,
    RowCount,
    UsualRows,
)
from rivermark.model.rule import SuiteRule
from rivermark.model.suite import Suite
from rivermark.quality.column_kind import kinds_of_arrow
from rivermark.quality.exported_suite import exported
from rivermark.quality.fitting import fitted
from rivermark.quality.imported_suite import RULE_KEY
from rivermark.quality.result import SuiteResult

NOTHING_RAISED = {"raised_exception": False, "exception_message": None, "exception_traceback": None}


def stored(
    suite: Suite,
    result: SuiteResult,
    schema: pa.Schema,
    evaluated_there: Mapping[str, ExpectationValidationResult],
) -> ExpectationSuiteValidationResult:
    """The result of a suite; by their rules' names those of what Great Expectations evaluated.

    Rules of rows are left out where there are none: they would stand there as passed.
    """
    results = []
    for rule, check in zip(suite.rules, result.results, strict=True):
        if check.error is not None:
            results.append(_crashed(rule, check))
        elif rule.name in evaluated_there:
            results.append(evaluated_there[rule.name])
        elif result.rows or isinstance(rule.question, Columns | RowCount):
            results.append(_result(rule, check, result.rows, schema))
    for each in results:
        # The templates of the pages run what looks like a script.
        each.result = escaped(each.result)
    good, name = sum(bool(each.success) for each in results), result.table.replace("/", ".")
    return ExpectationSuiteValidationResult(
        success=good == len(results),
        results=results,
        suite_name=suite.name.replace("/", "."),
        statistics={
            "evaluated_expectations": len(results),
            "successful_expectations": good,
            "unsuccessful_expectations": len(results) - good,
            "success_percent": 100 * good / len(results) if results else None,
        },
        meta={
            "great_expectations_version": __version__,
            "batch_spec": {"data_asset_name": name, "batch_data": "SparkDataFrame"},
            "batch_markers": {"ge_load_time": f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"},
            "active_batch_definition": {
                "datasource_name": "lake",
                "data_connector_name": "fluent",
                "data_asset_name": name,
                "batch_identifiers": {"dataframe": "<DATAFRAME>"},
            },
        },
        batch_id=f"lake-{name}",
    )


def about(rule: SuiteRule) -> dict[str, Any]:
    """The parts of each expectation beside its arguments."""
    # `description` is what the pages show; their templates do not escape it.
    shown = f"{rule.name} ({rule.bound}; {rule.severity})"
    if isinstance(rule.question, NoRowsWhere):
        shown = f"{shown}: {rule.question.condition}"
    return {
        # Results come in an order of their own.
        "meta": {RULE_KEY: rule.name},
        "description": html.escape(shown),
        "severity": FailureSeverity(rule.severity),
    }


def escaped(value: Any) -> Any:
    """A result with every text of it as HTML shows it."""
    match value:
        case str():
            return html.escape(value)
        case Mapping():
            return {escaped(name): escaped(each) for name, each in value.items()}
        case list() | tuple():
            return [escaped(each) for each in value]
    return value


def _result(
    rule: SuiteRule, check: CheckResult, rows: int, schema: pa.Schema
) -> ExpectationValidationResult:
    return ExpectationValidationResult(
        success=check.passed,
        expectation_config=_expectation(rule, schema).configuration,
        result=_numbers(rule, check, rows, schema),
        exception_info=dict(NOTHING_RAISED),
    )


def _crashed(rule: SuiteRule, check: CheckResult) -> ExpectationValidationResult:
    stands_for = gxe.UnexpectedRowsExpectation(
        unexpected_rows_query="SELECT * FROM {batch} WHERE false", **about(rule)
    )
    return ExpectationValidationResult(
        success=False,
        expectation_config=stands_for.configuration,
        result={},
        exception_info={
            "raised_exception": True,
            "exception_message": html.escape(check.observed),
            "exception_traceback": "",
        },
    )


def _expectation(rule: SuiteRule, schema: pa.Schema) -> Expectation:
    if isinstance(rule.question, NoRowsWhere):
        # Its condition is in the description: it need not have an equal in Spark's SQL.
        kwargs: dict[str, Any] = {"max_value": rule.question.at_most}
        kind = "expect_table_row_count_to_be_between"
    else:
        kind, kwargs = exported(fitted(rule, kinds_of_arrow(schema)), schema)
    if isinstance(rule.question, OneOf):
        kwargs["value_set"] = [str(value) for value in kwargs["value_set"]]
    return get_expectation_impl(kind)(**kwargs, **about(rule))


def _numbers(rule: SuiteRule, check: CheckResult, rows: int, schema: pa.Schema) -> dict[str, Any]:
    match rule.question:
        case RowCount():
            return {"observed_value": rows}
        case NoRowsWhere() | NoRowsFrom() | UsualRows():
            return {"observed_value": check.unexpected_count}
        case Columns(names):
            return _columns(names, schema.names)
    unexpected, evaluated = check.unexpected_count or 0, check.evaluated_count or 0
    missing = {} if isinstance(rule.question, NotNull) else {"missing_count": rows - evaluated}
    share = unexpected / evaluated * 100 if evaluated else None
    numbers: dict[str, Any] = {
        "element_count": rows,
        "unexpected_count": unexpected,
        "unexpected_percent": share,
        "partial_unexpected_list": list(check.example_texts),
    }
    if missing:
        numbers |= missing | {
            "missing_percent": (rows - evaluated) / rows * 100,
            "unexpected_percent_total": unexpected / rows * 100,
            "unexpected_percent_nonmissing": share,
        }
    return numbers


def _columns(declared: Sequence[str], actual: Sequence[str]) -> dict[str, Any]:
    sides = {
        "unexpected": sorted(set(actual) - set(declared)),
        "missing": sorted(set(declared) - set(actual)),
    }
    wrong = {side: names for side, names in sides.items() if names}
    details = {"details": {"mismatched": wrong}} if wrong else {}
    return {"observed_value": sorted(actual), **details}
