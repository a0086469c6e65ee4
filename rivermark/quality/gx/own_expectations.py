"""Expectations that Great Expectations alone evaluates, on Spark.

Importing this module imports Great Expectations, which takes seconds.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from great_expectations.core import ExpectationSuite
from great_expectations.exceptions import ExpectationNotFoundError
from great_expectations.expectations.registry import (
    get_expectation_impl,
    list_registered_expectation_implementations,
)

from rivermark.model.check import CheckResult
from rivermark.model.nearest import did_you_mean
from rivermark.model.question import OfGreatExpectations
from rivermark.model.rule import SuiteRule
from rivermark.quality.errors import CheckCrashed, SuiteDoesNotFit
from rivermark.quality.gx.results import about
from rivermark.quality.result import result_as_observed, result_of_rows

if TYPE_CHECKING:
    from great_expectations.core.expectation_validation_result import ExpectationValidationResult
    from great_expectations.datasource.fluent.interfaces import Batch
    from great_expectations.expectations.expectation import Expectation

LONGEST: Final = 200
"""Characters of a value that are shown; a payload of megabytes would make a page unusable."""
WITHHELD: Final = "withheld: the table has personal columns"
"""What is shown in place of a value or a message."""
SPARK_ERROR_CLASS: Final = re.compile(r"\[[A-Z][A-Z0-9_.]+\]")


def evaluated(
    batch: Batch, rule: SuiteRule, *, personal: Collection[str]
) -> tuple[CheckResult, ExpectationValidationResult]:
    """The result of one expectation, and the same as Great Expectations has it.

    What it observes is withheld where that may be values of `personal` columns.

    Raises:
        SuiteDoesNotFit: Great Expectations does not know it, or not with these arguments.
        CheckCrashed: It could not be evaluated.
    """
    question = rule.question
    assert isinstance(question, OfGreatExpectations)  # noqa: S101 - for the type checker
    suite = ExpectationSuite(name="own", expectations=[as_it_is(rule, question)])
    shown = {"result_format": "BASIC", "partial_unexpected_count": 0}
    [result] = batch.validate(suite, result_format=shown).results
    for caught in _caught(result.exception_info):
        message = str(caught.get("exception_message") or "no message")
        if personal:
            # Spark's messages quote values.
            named = SPARK_ERROR_CLASS.search(message)
            message = f"{named[0] if named else 'message'} {WITHHELD}"
        raise CheckCrashed(_first_line(message), rule=rule.name)
    if personal and not (question.columns and set(personal).isdisjoint(question.columns)):
        result.result = without_values(result.result)
    return _read(rule, passed=bool(result.success), numbers=result.result), result


def as_it_is(rule: SuiteRule, question: OfGreatExpectations) -> Expectation:
    """The expectation that Great Expectations alone evaluates.

    Raises:
        SuiteDoesNotFit: Its module cannot be imported, or it is not known, or does not take its
            arguments.
    """
    try:
        if question.module is not None:
            import_module(question.module)
    except Exception as error:
        reason = f"module '{question.module}' of {question.type} cannot be imported: {error}"
        raise SuiteDoesNotFit(reason, rule=rule.name) from error
    try:
        return get_expectation_impl(question.type)(**question.kwargs, **about(rule))
    except ExpectationNotFoundError:
        near = did_you_mean(question.type, list_registered_expectation_implementations())
        if question.module is None:
            reason = (
                f"Great Expectations knows no '{question.type}'{near or ';'} give the module that "
                "defines it: from_great_expectations(..., module='...')"
            )
        else:
            reason = (
                f"neither Great Expectations nor module '{question.module}' defines "
                f"'{question.type}'{near}"
            )
    except (TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        reason = f"{question.type} does not take {question.arguments}: {why}"
    raise SuiteDoesNotFit(reason, rule=rule.name)


def without_values(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """The counts and shares of a result of Great Expectations, without what it observed."""
    counts = {n: v for n, v in numbers.items() if isinstance(v, int | float)}
    return counts | ({"observed_value": WITHHELD} if "observed_value" in numbers else {})


def _read(rule: SuiteRule, *, passed: bool, numbers: Mapping[str, Any]) -> CheckResult:
    if "element_count" not in numbers:
        observed = str(numbers.get("observed_value", "no number"))
        return result_as_observed(rule, observed[:LONGEST], passed=passed)
    evaluated = numbers["element_count"] - numbers.get("missing_count", 0)
    unexpected = numbers["unexpected_count"]
    return result_of_rows(rule, evaluated=evaluated, unexpected=unexpected, passed=passed)


def _caught(info: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    # One exception lies in the mapping itself, those of metrics in one mapping for each metric.
    for one in (info,) if "raised_exception" in info else info.values():
        if one.get("raised_exception"):
            yield one


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), message)
