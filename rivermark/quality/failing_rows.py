"""The rows behind a failure: which ones break a rule, and how many of them each day has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Final

from rivermark.model.question import RowQuestion, RowSearch
from rivermark.model.rule import SuiteRule
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import DuckDbEvaluator
from rivermark.quality.result import FailingRows

if TYPE_CHECKING:
    from rivermark.quality.duckdb_evaluator import Rows

SHOWN: Final = 50
"""Rows of each rule that are kept to be opened."""


@dataclass(frozen=True)
class Evidence:
    """Rows of one version of a table that break rules; values of personal columns are left out.

    `hidden` are the personal columns; `command` shows the rows of the first rule on the console.
    """

    table: str
    version: int
    failing: tuple[FailingRows, ...]
    by_day: Mapping[str, Mapping[date, int]]
    hidden: tuple[str, ...]
    command: str

    def days_of(self, failing: FailingRows, newest: int | None = None) -> list[tuple[str, int]]:
        """Rows of each day, the newest first, of others, and without a day: together all rows."""
        days = sorted(self.by_day.get(failing.rule, {}).items(), reverse=True)
        shown = [(day.isoformat(), n) for day, n in days[:newest]]
        earlier = sum(n for _, n in days[len(shown) :])
        rest = failing.count - sum(n for _, n in days) if days else 0
        return [*shown, *((name, n) for name, n in (("earlier", earlier), ("no day", rest)) if n)]


def about_rows(rule: SuiteRule) -> bool:
    """Returns True if rows break the rule, and DuckDB finds them."""
    return isinstance(rule.question, RowQuestion | RowSearch)


def evidence_of(
    rows: Rows,
    table: Table,
    rules: Sequence[SuiteRule],
    *,
    version: int,
    limit: int = SHOWN,
    personal: bool = False,
) -> Evidence:
    """The rows that break these rules; rules that are not about rows have none to show."""
    of_rows = [rule for rule in rules if about_rows(rule)]
    evaluator = DuckDbEvaluator(rows, table, version)
    by_day = {rule.name: evaluator.failures_by_day(rule) for rule in of_rows}
    first = of_rows[0].name if len(of_rows) == 1 else "all"
    return Evidence(
        table=table.name,
        version=version,
        failing=tuple(
            evaluator.failing_rows(rule, limit=limit, personal=personal) for rule in of_rows
        ),
        by_day={name: days for name, days in by_day.items() if days},
        hidden=() if personal else table.personal,
        command=f'rivermark show {table.name} --bad "{first}" --version {version}',
    )
