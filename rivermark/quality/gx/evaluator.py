"""Judging a batch by a suite: asking, noticing crashes, and fetching samples for what failed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from great_expectations.core import ExpectationSuiteValidationResult
from great_expectations.core.expectation_validation_result import ExpectationValidationResult
from pyspark.sql import functions as F

from rivermark.model.question import Columns, Given, NoRowsWhere, RowCount, columns_asked
from rivermark.model.rule import Rule
from rivermark.model.suite import Suite
from rivermark.quality.errors import CheckCrashed
from rivermark.quality.gx.results import (
    not_judged,
    read_result,
    read_row,
    read_sample,
    refuse_crash,
    shown_on_pages,
)
from rivermark.quality.gx.translation import RULE_KEY, condition_with_unknown, translate
from rivermark.quality.result import ExpectationResult

if TYPE_CHECKING:
    from great_expectations.datasource.fluent.interfaces import Batch
    from pyspark.sql import DataFrame

SAMPLE_SIZE: Final = 5


@dataclass(frozen=True)
class Judgement:
    """The answers, and the same as Great Expectations stores and draws them."""

    rows: int
    results: tuple[ExpectationResult, ...]
    stored: ExpectationSuiteValidationResult


def judge(df: DataFrame, batch: Batch, suite: Suite, *, personal: Collection[str]) -> Judgement:
    """Ask all rules at once; where there are no rows, only the rules of the table as a whole.

    Raises:
        CheckCrashed: Great Expectations or Spark could not evaluate a rule.
    """
    examiner = _Examiner(df, batch, suite, personal)
    answers = examiner.ask(suite.rules)
    rows = next(
        answers[r.name].result["observed_value"]
        for r in suite.rules
        if isinstance(r.asks, RowCount)
    )
    if rows == 0:
        # A rule of rows would pass; neither the answers nor the pages may say so.
        of_table = [r for r in suite.rules if isinstance(r.asks, Columns | RowCount)]
        answers = examiner.ask(of_table)
        results = tuple(
            _read(r, answers[r.name]) if r in of_table else not_judged(r, passed=suite.may_be_empty)
            for r in suite.rules
        )
    else:
        results = examiner.with_samples(answers)
    return Judgement(rows, results, examiner.stored)


class _Examiner:
    def __init__(
        self, df: DataFrame, batch: Batch, suite: Suite, personal: Collection[str]
    ) -> None:
        self._df = df
        self._batch = batch
        self._suite = suite
        self._personal = frozenset(personal)
        self.stored: ExpectationSuiteValidationResult

    def ask(
        self, rules: Sequence[Rule], *, sample: int = 0
    ) -> dict[str, ExpectationValidationResult]:
        """The answers by the rules' names; without samples all numbers come from few Spark jobs."""
        checked = self._batch.validate(
            translate(self._suite.name, rules, self._df.schema),
            result_format={"result_format": "BASIC", "partial_unexpected_count": sample},
        )
        if not sample:
            self.stored = checked
        answers = {_rule_of(a): a for a in checked.results}
        for rule in rules:
            if rule.name not in answers:
                raise CheckCrashed(f"rule '{rule.name}' was not answered at all")
            refuse_crash(rule, answers[rule.name].exception_info, withhold=bool(self._personal))
        return answers

    def with_samples(
        self, answers: dict[str, ExpectationValidationResult]
    ) -> tuple[ExpectationResult, ...]:
        """The results, with values that failed where no personal column is involved.

        Only failed rules fetch them: a job for each rule doubled the time of a small table.
        """
        results = {r.name: _read(r, answers[r.name]) for r in self._suite.rules}
        failed = [r for r in self._suite.rules if not results[r.name].passed]
        shown = [
            r
            for r in failed
            if columns_asked(r.asks)
            and self._personal.isdisjoint(columns_asked(r.asks))
            and not isinstance(r.asks, Given)
        ]
        for name, answer in (self.ask(shown, sample=SAMPLE_SIZE) if shown else {}).items():
            rule = next(r for r in shown if r.name == name)
            sample = read_sample(rule, answer.result["partial_unexpected_list"], self._df.schema)
            results[name] = replace(results[name], sample=sample)
            answers[name].result["partial_unexpected_list"] = shown_on_pages(sample)
        for rule in failed:
            if isinstance(rule.asks, NoRowsWhere):
                results[rule.name] = replace(results[rule.name], sample=self._rows_found(rule.asks))
        return tuple(results.values())

    def _rows_found(self, search: NoRowsWhere) -> tuple[str, ...]:
        open_columns = [c for c in self._df.columns if c not in self._personal]
        found = self._df.where(F.expr(condition_with_unknown(search))).select(*open_columns)
        return tuple(read_row(row, self._df.schema) for row in found.take(SAMPLE_SIZE))


def _rule_of(answer: ExpectationValidationResult) -> str:
    return str((answer.expectation_config or answer).meta[RULE_KEY])


def _read(rule: Rule, answer: ExpectationValidationResult) -> ExpectationResult:
    return read_result(rule, success=bool(answer.success), numbers=answer.result)
