"""A batch validated by a suite: all rules at once, crashes recognised, examples of what failed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from pyspark.sql import functions as F

from rivermark.model.check import CheckResult, Example
from rivermark.model.question import Columns, NoRowsWhere, NotNull, RowCount, columns_of
from rivermark.model.rule import SuiteRule
from rivermark.model.suite import Suite
from rivermark.quality.errors import CheckCrashed
from rivermark.quality.gx.results import (
    as_example,
    read_examples,
    read_result,
    refuse_crash,
    shown_on_pages,
)
from rivermark.quality.gx.translation import RULE_KEY, condition_with_unknown, translate
from rivermark.quality.result import not_evaluated

if TYPE_CHECKING:
    from great_expectations.datasource.fluent.interfaces import Batch
    from pyspark.sql import DataFrame

EXAMPLES: Final = 5


@dataclass(frozen=True)
class Validation:
    """The results, and the same as Great Expectations stores and draws them."""

    rows: int
    results: tuple[CheckResult, ...]
    stored: ExpectationSuiteValidationResult


def validate(
    frame: DataFrame, batch: Batch, suite: Suite, *, personal: Collection[str]
) -> Validation:
    """Evaluate all rules at once; without rows, only the rules of the table as a whole.

    Raises:
        CheckCrashed: Great Expectations or Spark could not evaluate a rule.
    """
    validator = _Validator(frame, batch, suite, personal)
    validated = validator.run(suite.rules)
    rows = next(
        validated[r.name].result["observed_value"]
        for r in suite.rules
        if isinstance(r.question, RowCount)
    )
    if rows == 0:
        # A rule of rows would pass; neither the results nor the pages may say so.
        of_table = [r for r in suite.rules if isinstance(r.question, Columns | RowCount)]
        validated = validator.run(of_table)
        results = tuple(
            _read(r, validated[r.name])
            if r in of_table
            else not_evaluated(r, passed=suite.may_be_empty)
            for r in suite.rules
        )
    else:
        results = validator.with_examples(validated)
    return Validation(rows, results, validator.stored)


class _Validator:
    def __init__(
        self, frame: DataFrame, batch: Batch, suite: Suite, personal: Collection[str]
    ) -> None:
        self._frame = frame
        self._batch = batch
        self._suite = suite
        self._personal = frozenset(personal)
        self.stored: ExpectationSuiteValidationResult

    def run(
        self, rules: Sequence[SuiteRule], *, examples: int = 0
    ) -> dict[str, ExpectationValidationResult]:
        """Results by the rules' names; without examples all numbers come from few Spark jobs."""
        of_suite = self._batch.validate(
            translate(self._suite.name, rules, self._frame.schema),
            result_format={"result_format": "BASIC", "partial_unexpected_count": examples},
        )
        if not examples:
            self.stored = of_suite
        results = {_rule_of(result): result for result in of_suite.results}
        for rule in rules:
            if rule.name not in results:
                raise CheckCrashed(f"rule '{rule.name}' has no result at all")
            refuse_crash(rule, results[rule.name].exception_info, withhold=bool(self._personal))
        return results

    def with_examples(
        self, validated: dict[str, ExpectationValidationResult]
    ) -> tuple[CheckResult, ...]:
        """The results, with values that failed where no personal column is involved.

        Only failed rules fetch them: a job for each rule doubled the time of a small table.
        """
        results = {r.name: _read(r, validated[r.name]) for r in self._suite.rules}
        failed = [r for r in self._suite.rules if not results[r.name].passed]
        shown = [
            r
            for r in failed
            if columns_of(r.question)
            and self._personal.isdisjoint(columns_of(r.question))
            and not isinstance(r.question, NotNull)
        ]
        again = self.run(shown, examples=EXAMPLES) if shown else {}
        for rule in shown:
            values = again[rule.name].result["partial_unexpected_list"]
            examples = read_examples(rule, values, self._frame.schema)
            results[rule.name] = replace(results[rule.name], examples=examples)
            texts = shown_on_pages(results[rule.name].example_texts)
            validated[rule.name].result["partial_unexpected_list"] = texts
        for rule in failed:
            if isinstance(rule.question, NoRowsWhere):
                rows = self._failing_rows(rule.question)
                results[rule.name] = replace(results[rule.name], examples=rows)
        return tuple(results.values())

    def _failing_rows(self, search: NoRowsWhere) -> tuple[Example, ...]:
        open_columns = [c for c in self._frame.columns if c not in self._personal]
        failing = self._frame.where(F.expr(condition_with_unknown(search))).select(*open_columns)
        return tuple(as_example(r.asDict(), self._frame.schema) for r in failing.take(EXAMPLES))


def _rule_of(result: ExpectationValidationResult) -> str:
    return str((result.expectation_config or result).meta[RULE_KEY])


def _read(rule: SuiteRule, result: ExpectationValidationResult) -> CheckResult:
    return read_result(rule, passed=bool(result.success), numbers=result.result)
