"""What a suite found: one result per rule, with the number observed beside its limit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rivermark.model.rule import Severity


@dataclass(frozen=True, kw_only=True)
class ExpectationResult:
    """The answer to one rule.

    `looked_at` is the number of rows (or given values) that the rule judged, None for rules of the
    table as a whole; `unexpected_count` of them do not comply. `sample` holds a few of those as
    text, and is None where there are none to show or where a personal column is involved.
    """

    name: str
    severity: Severity
    passed: bool
    observed: str
    bound: str
    unexpected_count: int | None = None
    looked_at: int | None = None
    sample: tuple[str, ...] | None = None

    @property
    def unexpected_share(self) -> float | None:
        """Share of the rows looked at that do not comply; None where nothing was looked at."""
        if self.unexpected_count is None or not self.looked_at:
            return None
        return self.unexpected_count / self.looked_at


@dataclass(frozen=True, kw_only=True)
class SuiteResult:
    """The answers to all rules of a suite about one version of a table.

    `docs_path` is the page of this run, None when no page was asked for.
    """

    suite: str
    table: str
    version: int
    rows: int
    results: tuple[ExpectationResult, ...]
    docs_path: Path | None
    elapsed: timedelta

    @property
    def passed(self) -> bool:
        """Whether no critical rule and no warning rule failed; rules of severity info only show."""
        return not any(r.severity != "info" for r in self.failures)

    @property
    def failures(self) -> tuple[ExpectationResult, ...]:
        """The rules that failed, of whatever severity."""
        return tuple(r for r in self.results if not r.passed)
