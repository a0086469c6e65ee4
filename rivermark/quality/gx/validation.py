"""A batch validated by a suite: all rules at once, crashes recognised, examples of what failed."""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from pyspark.sql import functions as F

from rivermark.model.check import CheckResult, Example
from rivermark.model.question import Columns, NoRowsWhere, NotNull, RowCount, columns_of
from rivermark.model.rule import SuiteRule
from rivermark.model.suite import Suite
from rivermark.quality.errors import CheckCrashed, SuiteDoesNotFit
from rivermark.quality.gx.results import (
    as_example,
    crash_of,
    read_examples,
    read_result,
    shown_on_pages,
)
from rivermark.quality.gx.translation import (
    RULE_KEY,
    condition_with_unknown,
    stand_in,
    translate,
)
from rivermark.quality.result import not_evaluated, unanswered

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
        CheckCrashed: Great Expectations or Spark could not even count the rows.
    """
    validator = _Validator(frame, batch, suite, personal)
    validated = validator.run(suite.rules)
    count = next(r for r in suite.rules if isinstance(r.question, RowCount))
    if count.name not in validated:
        raise CheckCrashed(str(validator.crashed[count.name].error))
    rows = validated[count.name].result["observed_value"]
    if rows == 0:
        # A rule of rows would pass; neither the results nor the pages may say so.
        of_table = [
            r
            for r in suite.rules
            if isinstance(r.question, Columns | RowCount) and r.name in validated
        ]
        validated = validator.run(of_table)
        results = {r.name: not_evaluated(r, passed=suite.may_be_empty) for r in suite.rules}
        results |= {r.name: _read(r, validated[r.name]) for r in of_table}
    else:
        results = validator.with_examples(validated)
    every = results | validator.crashed
    return Validation(rows, tuple(every[r.name] for r in suite.rules), validator.stored)


class _Validator:
    def __init__(
        self, frame: DataFrame, batch: Batch, suite: Suite, personal: Collection[str]
    ) -> None:
        self._frame = frame
        self._batch = batch
        self._suite = suite
        self._personal = frozenset(personal)
        self.stored: ExpectationSuiteValidationResult
        self.crashed: dict[str, CheckResult] = {}
        """The rules that could not be evaluated."""

    def run(
        self, rules: Sequence[SuiteRule], *, examples: int = 0
    ) -> dict[str, ExpectationValidationResult]:
        """Results by the rules' names, of those that can be evaluated.

        Without examples all numbers come from few Spark jobs. A rule that crashes takes those of
        its job along, so each that did is asked by itself, and then the others together again.
        """
        fitting = [rule for rule in rules if self._fits(rule)]
        of_suite = self._validate(fitting, examples)
        if any(self._crash(rule, of_suite) for rule in fitting):
            alone = {rule: self._validate([rule], examples) for rule in fitting}
            broken = {r: crash for r, each in alone.items() if (crash := self._crash(r, each))}
            for rule, crash in broken.items():
                self.crashed[rule.name] = unanswered(rule, crash)
            fitting = [rule for rule in fitting if rule not in broken]
            of_suite = self._validate(fitting, examples)
        results = {_rule_of(result): result for result in of_suite.results}
        if not examples:
            self.stored = with_errors(of_suite, self._suite, self.crashed)
        return results

    def _fits(self, rule: SuiteRule) -> bool:
        try:
            translate(self._suite.name, [rule], self._frame.schema)
        except SuiteDoesNotFit as error:
            self.crashed[rule.name] = unanswered(rule, error)
            return False
        return True

    def _validate(
        self, rules: Sequence[SuiteRule], examples: int
    ) -> ExpectationSuiteValidationResult:
        return self._batch.validate(
            translate(self._suite.name, rules, self._frame.schema),
            result_format={"result_format": "BASIC", "partial_unexpected_count": examples},
        )

    def _crash(
        self, rule: SuiteRule, of_suite: ExpectationSuiteValidationResult
    ) -> CheckCrashed | None:
        """Why the rule has no answer in these results."""
        for result in of_suite.results:
            if _rule_of(result) == rule.name:
                return crash_of(rule, result.exception_info, withhold=bool(self._personal))
        return CheckCrashed(f"rule '{rule.name}' has no result at all")

    def with_examples(
        self, validated: dict[str, ExpectationValidationResult]
    ) -> dict[str, CheckResult]:
        """The results, with values that failed where no personal column is involved.

        Only failed rules fetch them: a job for each rule doubled the time of a small table.
        """
        rules = [r for r in self._suite.rules if r.name in validated]
        results = {r.name: _read(r, validated[r.name]) for r in rules}
        failed = [r for r in rules if not results[r.name].passed]
        shown = [
            r
            for r in failed
            if columns_of(r.question)
            and self._personal.isdisjoint(columns_of(r.question))
            and not isinstance(r.question, NotNull)
        ]
        again = self.run(shown, examples=EXAMPLES) if shown else {}
        for rule in shown:
            if rule.name not in again:
                continue
            values = again[rule.name].result["partial_unexpected_list"]
            examples = read_examples(rule, values, self._frame.schema)
            results[rule.name] = replace(results[rule.name], examples=examples)
            texts = shown_on_pages(results[rule.name].example_texts)
            validated[rule.name].result["partial_unexpected_list"] = texts
        for rule in failed:
            if isinstance(rule.question, NoRowsWhere):
                rows = self._failing_rows(rule.question)
                results[rule.name] = replace(results[rule.name], examples=rows)
        return results

    def _failing_rows(self, search: NoRowsWhere) -> tuple[Example, ...]:
        open_columns = [c for c in self._frame.columns if c not in self._personal]
        failing = self._frame.where(F.expr(condition_with_unknown(search))).select(*open_columns)
        return tuple(as_example(r.asDict(), self._frame.schema) for r in failing.take(EXAMPLES))


def with_errors(
    of_suite: ExpectationSuiteValidationResult, suite: Suite, crashed: Mapping[str, CheckResult]
) -> ExpectationSuiteValidationResult:
    """The results with those of rules that could not be evaluated, as the pages show them."""
    for rule in suite.rules:
        if (error := crashed.get(rule.name)) is not None:
            of_suite.results.append(
                ExpectationValidationResult(
                    success=False,
                    expectation_config=stand_in(rule).configuration,
                    exception_info={
                        "raised_exception": True,
                        "exception_message": html.escape(error.observed),
                        "exception_traceback": "",
                    },
                )
            )
    if crashed:
        of_suite.success = False
        numbers = of_suite.statistics
        numbers["evaluated_expectations"] += len(crashed)
        numbers["unsuccessful_expectations"] += len(crashed)
        good = numbers["successful_expectations"]
        numbers["success_percent"] = 100 * good / numbers["evaluated_expectations"]
    return of_suite


def _rule_of(result: ExpectationValidationResult) -> str:
    return str((result.expectation_config or result).meta[RULE_KEY])


def _read(rule: SuiteRule, result: ExpectationValidationResult) -> CheckResult:
    return read_result(rule, passed=bool(result.success), numbers=result.result)
