"""A batch validated by a suite: all rules at once, crashes recognised, examples of what failed."""

from __future__ import annotations

import html
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from pyspark.sql import functions as F

from rivermark.lake.sql import spark_quoted
from rivermark.model.check import CheckResult, Example
from rivermark.model.question import (
    Columns,
    NoRowsWhere,
    NotNull,
    OfGreatExpectations,
    RowCount,
    columns_of,
)
from rivermark.model.rule import SuiteRule
from rivermark.model.suite import Suite
from rivermark.quality.column_kind import kinds_of_spark
from rivermark.quality.condition_sql import sql_of_condition
from rivermark.quality.errors import CheckCrashed, SuiteDoesNotFit
from rivermark.quality.gx.results import (
    as_example,
    crash_of,
    read_examples,
    read_result,
    shown_on_pages,
    without_values,
)
from rivermark.quality.gx.translation import stand_in, translate
from rivermark.quality.imported_suite import RULE_KEY
from rivermark.quality.result import not_evaluated, result_of_columns, unanswered

if TYPE_CHECKING:
    from great_expectations.datasource.fluent.interfaces import Batch
    from pyspark.sql import DataFrame

logger = logging.getLogger(__name__)

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
        results |= {r.name: _read(r, validated[r.name], frame.columns) for r in of_table}
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

    def run(self, rules: Sequence[SuiteRule]) -> dict[str, ExpectationValidationResult]:
        """Results by the rules' names, of those that can be evaluated.

        Without examples all numbers come from few Spark jobs. A rule that crashes takes those of
        its job along, so each that did is asked by itself, and then the others together again.
        """
        fitting = [rule for rule in rules if self._fits(rule)]
        of_suite = self._validate(fitting)
        alone: list[ExpectationValidationResult] = []
        while crashed := [rule for rule in fitting if self._crash(rule, of_suite)]:
            for rule in crashed:
                single = self._validate([rule])
                if crash := self._crash(rule, single):
                    self.crashed[rule.name] = unanswered(self._suite, rule, crash)
                else:
                    alone += single.results
            fitting = [rule for rule in fitting if rule not in crashed]
            of_suite = self._validate(fitting)
        _append(of_suite, alone)
        hidden = {rule.name for rule in rules if self._may_show_personal(rule)}
        for result in of_suite.results:
            if _rule_of(result) in hidden:
                result.result = without_values(result.result)
        self.stored = with_errors(of_suite, self._suite, self.crashed)
        return {
            _rule_of(result): result
            for result in of_suite.results
            if _rule_of(result) not in self.crashed
        }

    def _may_show_personal(self, rule: SuiteRule) -> bool:
        """Whether what Great Expectations observes itself may be values of personal columns."""
        if not (self._personal and isinstance(rule.question, OfGreatExpectations)):
            return False
        named = rule.question.columns
        return not named or not self._personal.isdisjoint(named)

    def _fits(self, rule: SuiteRule) -> bool:
        try:
            translate(self._suite.name, [rule], self._frame.schema)
        except SuiteDoesNotFit as error:
            self.crashed[rule.name] = unanswered(self._suite, rule, error)
            return False
        return True

    def _validate(
        self, rules: Sequence[SuiteRule], examples: int = 0
    ) -> ExpectationSuiteValidationResult:
        return self._batch.validate(
            translate(self._suite.name, rules, self._frame.schema),
            result_format={"result_format": "BASIC", "partial_unexpected_count": examples},
        )

    def _crash(
        self, rule: SuiteRule, of_suite: ExpectationSuiteValidationResult
    ) -> CheckCrashed | None:
        """Why the rule has no answer in these results."""
        result = next((r for r in of_suite.results if _rule_of(r) == rule.name), None)
        if result is None:
            return CheckCrashed("it has no result at all", rule=rule.name)
        crash = crash_of(rule, result.exception_info, withhold=bool(self._personal))
        own = isinstance(rule.question, OfGreatExpectations)
        if crash is None and not result.result and not own:
            return CheckCrashed("its result has no numbers", rule=rule.name)
        return crash

    def with_examples(
        self, validated: dict[str, ExpectationValidationResult]
    ) -> dict[str, CheckResult]:
        """The results, with values that failed where no personal column is involved.

        Only failed rules fetch them: a job for each rule doubled the time of a small table.
        """
        rules = [r for r in self._suite.rules if r.name in validated]
        results = {r.name: _read(r, validated[r.name], self._frame.columns) for r in rules}
        failed = [r for r in rules if not results[r.name].passed]
        shown = [
            r
            for r in failed
            if columns_of(r.question)
            and self._personal.isdisjoint(columns_of(r.question))
            and not isinstance(r.question, NotNull | OfGreatExpectations)
        ]
        for name, examples in self._examples(shown).items():
            results[name] = replace(results[name], examples=examples)
            texts = shown_on_pages(results[name].example_texts)
            validated[name].result["partial_unexpected_list"] = texts
        for rule in failed:
            if isinstance(rule.question, NoRowsWhere):
                with _sampling(rule):
                    rows = self._failing_rows(rule)
                    results[rule.name] = replace(results[rule.name], examples=rows)
        return results

    def _examples(self, rules: Sequence[SuiteRule]) -> dict[str, tuple[Example, ...]]:
        """Failing values by the rules' names; none where they cannot be read, as a year 10000."""
        if not rules:
            return {}
        examples: dict[str, tuple[Example, ...]] = {}
        with _sampling(*rules):
            of_suite = self._validate(rules, EXAMPLES)
            by_name = {_rule_of(result): result.result for result in of_suite.results}
            for rule in rules:
                with _sampling(rule):
                    values = by_name[rule.name]["partial_unexpected_list"]
                    examples[rule.name] = read_examples(rule, values, self._frame.schema)
        if len(rules) > 1:
            for rule in rules:
                if rule.name not in examples:
                    examples |= self._examples([rule])
        return examples

    def _failing_rows(self, rule: SuiteRule) -> tuple[Example, ...]:
        open_columns = [c for c in self._frame.columns if c not in self._personal]
        condition = sql_of_condition(rule, kinds_of_spark(self._frame.schema), "spark")
        failing = self._frame.where(F.expr(condition)).select(*map(spark_quoted, open_columns))
        return tuple(as_example(r.asDict(), self._frame.schema) for r in failing.take(EXAMPLES))


@contextmanager
def _sampling(*rules: SuiteRule) -> Iterator[None]:
    """Go on without examples: whether the rules hold is known already."""
    try:
        yield
    except Exception as error:
        # The message may quote a value.
        names = ", ".join(repr(rule.name) for rule in rules)
        logger.warning("no examples of %s: %s", names, type(error).__name__)


def with_errors(
    of_suite: ExpectationSuiteValidationResult, suite: Suite, crashed: Mapping[str, CheckResult]
) -> ExpectationSuiteValidationResult:
    """The results with those of rules that could not be evaluated, as the pages show them."""
    errors = [
        ExpectationValidationResult(
            success=False,
            expectation_config=stand_in(rule).configuration,
            exception_info={
                "raised_exception": True,
                "exception_message": html.escape(crashed[rule.name].observed),
                "exception_traceback": "",
            },
        )
        for rule in suite.rules
        if rule.name in crashed
    ]
    return _append(of_suite, errors)


def _append(
    of_suite: ExpectationSuiteValidationResult, results: Sequence[ExpectationValidationResult]
) -> ExpectationSuiteValidationResult:
    """The results with more of them, and the numbers of all."""
    if results:
        of_suite.results += results
        good, every = sum(bool(r.success) for r in of_suite.results), len(of_suite.results)
        of_suite.success = good == every
        of_suite.statistics |= {
            "evaluated_expectations": every,
            "successful_expectations": good,
            "unsuccessful_expectations": every - good,
            "success_percent": 100 * good / every,
        }
    return of_suite


def _rule_of(result: ExpectationValidationResult) -> str:
    return str((result.expectation_config or result).meta[RULE_KEY])


def _read(
    rule: SuiteRule, result: ExpectationValidationResult, columns: Sequence[str]
) -> CheckResult:
    if isinstance(rule.question, Columns):
        declared, actual = set(rule.question.names), set(columns)
        return result_of_columns(rule, missing=declared - actual, unexpected=actual - declared)
    return read_result(rule, passed=bool(result.success), numbers=result.result)
