"""Results of a suite: one per rule, with the number observed beside its limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from rivermark.model.check import HARDEST_FIRST, CheckResult, Severity
from rivermark.model.question import NotNull, Unique, UsualRows
from rivermark.model.rule import SuiteRule, in_rows, percent
from rivermark.model.suite import Suite
from rivermark.quality.errors import Unanswered

if TYPE_CHECKING:
    from pyarrow import dataset

    Rows: TypeAlias = pa.Table | dataset.Dataset


@dataclass(frozen=True, kw_only=True)
class SuiteResult:
    """Results of all rules of a suite for one version of a table.

    `docs_path` is the page of this run, None when no page was drawn.
    """

    suite: str
    table: str
    version: int
    rows: int
    results: tuple[CheckResult, ...]
    docs_path: Path | None
    elapsed: timedelta

    @property
    def passed(self) -> bool:
        """True if no critical rule and no warning rule failed; rules of severity info only show."""
        return not any(r.severity != "info" for r in self.failures)

    @property
    def failures(self) -> tuple[CheckResult, ...]:
        """The rules that failed, of whatever severity."""
        return tuple(r for r in self.results if not r.passed)

    @property
    def severity(self) -> Severity:
        """The hardest severity of a failed rule; info where none failed."""
        return min((r.severity for r in self.failures), key=HARDEST_FIRST.index, default="info")


def result_of_columns(
    rule: SuiteRule, *, missing: Iterable[str], unexpected: Iterable[str]
) -> CheckResult:
    """Result of a rule about the names of the columns."""
    lists = {"missing": sorted(missing), "unexpected": sorted(unexpected)}
    wrong = "; ".join(f"{how}: {', '.join(names)}" for how, names in lists.items() if names)
    return _result(rule, passed=not wrong, observed=wrong or "as declared")


def result_of_row_count(rule: SuiteRule, rows: int, *, passed: bool) -> CheckResult:
    """Result of a rule about the number of rows."""
    return _result(rule, passed=passed, observed=in_rows(rows))


def result_of_search(rule: SuiteRule, count: int, *, passed: bool) -> CheckResult:
    """Result of a rule that searches for rows, or days, that must not exist."""
    days = isinstance(rule.question, UsualRows)
    observed = f"{count:,} {'day' if count == 1 else 'days'}" if days else in_rows(count)
    return _result(rule, passed=passed, observed=observed, unexpected_count=count)


def result_as_observed(rule: SuiteRule, observed: str, *, passed: bool) -> CheckResult:
    """Result of an expectation that counts no rows, with the value that it observed."""
    return _result(rule, passed=passed, observed=observed)


def result_of_rows(
    rule: SuiteRule, *, evaluated: int, unexpected: int, passed: bool
) -> CheckResult:
    """Result of a rule about single rows or given values."""
    if not evaluated:
        observed = "0 values evaluated"
    else:
        observed = f"{unexpected:,} of {evaluated:,} "
        share = percent(unexpected / evaluated)
        if isinstance(rule.question, NotNull):
            observed += f"empty ({share})"
        elif isinstance(rule.question, Unique):
            observed += f"repeated ({share})"
        else:
            observed += f"do not ({share}), {evaluated - unexpected:,} do"
    return _result(
        rule,
        passed=passed,
        observed=observed,
        evaluated_count=evaluated,
        unexpected_count=unexpected,
    )


def not_evaluated(rule: SuiteRule, *, passed: bool) -> CheckResult:
    """Result of a rule of rows for a table without rows, of which it cannot say anything."""
    return _result(rule, passed=passed, observed="0 rows evaluated", evaluated_count=0)


def unanswered(suite: Suite, rule: SuiteRule, error: Unanswered) -> CheckResult:
    """Result of a rule that could not be evaluated: failed, however bad its failure would be.

    It is a fault of the suite, or of what evaluates it; no severity of the data's faults applies.
    """
    reason = f"suite '{suite.name}', rule '{rule.name}': {error.reason}"
    return CheckResult(
        name=rule.name,
        severity="critical",
        passed=False,
        observed=f"could not be evaluated: {reason}",
        bound=rule.bound,
        error=reason,
    )


def _result(
    rule: SuiteRule,
    *,
    passed: bool,
    observed: str,
    evaluated_count: int | None = None,
    unexpected_count: int | None = None,
) -> CheckResult:
    return CheckResult(
        name=rule.name,
        severity=rule.severity,
        passed=passed,
        observed=observed,
        bound=rule.bound,
        evaluated_count=evaluated_count,
        unexpected_count=unexpected_count,
    )


@dataclass(frozen=True)
class FailingRows:
    """Some of the rows that break a rule, and how many there are; personal values are left out."""

    rule: str
    count: int
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
