"""Suites evaluated by DuckDB in the driver: of staged rows, of a day, and the rows that fail.

The same rules with the same results as Great Expectations on Spark, in milliseconds. The rows are
an Arrow table or the dataset of one version of a table, never of a moving one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import duckdb
import pyarrow as pa

from rivermark.lake.sql import connection, quoted
from rivermark.model.check import CheckResult
from rivermark.model.question import Columns, RowCount, Unique, UsualRows, columns_of
from rivermark.model.rule import SuiteRule
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.duckdb_sql import (
    BATCH,
    Condition,
    Search,
    condition_of,
    counting,
    local_day,
    on_days,
    search_of,
)
from rivermark.quality.errors import CheckCrashed, SuiteDoesNotFit
from rivermark.quality.result import (
    SuiteResult,
    not_evaluated,
    result_of_columns,
    result_of_row_count,
    result_of_rows,
    result_of_search,
    unanswered,
)

if TYPE_CHECKING:
    from pyarrow import dataset

    Rows: TypeAlias = pa.Table | dataset.Dataset

EVERY_ROW: Final = "true"
OWN_COLUMNS: Final = ("day", "row_count", "usual", "end_before")
"""Columns that our own queries add to those of a table."""


@dataclass(frozen=True)
class FailingRows:
    """Some of the rows that break a rule, and how many there are; personal values are left out."""

    rule: str
    count: int
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class DuckDbEvaluator:
    """Evaluates suites on rows of one version of a table."""

    rows: Rows
    table: Table
    version: int

    def evaluate(self, suite: Suite, day: date | None = None) -> SuiteResult:
        """Results of all rules, for all rows or for those of one day.

        For a day, rules that compare rows (keys, windows, usual numbers) are evaluated on the whole
        table, and their failures on that day count. A rule that cannot be evaluated has a result
        that says so.
        """
        started = time.monotonic()
        where = EVERY_ROW if day is None else on_days(self.table, [day])
        conditions: dict[SuiteRule, Condition] = {}
        failed: dict[SuiteRule, CheckResult] = {}
        for rule in suite.rules:
            try:
                condition = condition_of(rule, self.rows.schema)
            except SuiteDoesNotFit as error:
                failed[rule] = unanswered(rule, error)
                continue
            if condition is not None:
                conditions[rule] = condition
        total, counted = self._counted(conditions, where, failed)
        results = []
        for rule in suite.rules:
            if rule in failed:
                results.append(failed[rule])
            elif not total and not isinstance(rule.question, Columns | RowCount | UsualRows):
                results.append(not_evaluated(rule, passed=suite.may_be_empty))
            elif rule in counted:
                results.append(_of_rows(rule, *counted[rule]))
            else:
                try:
                    results.append(self._of_table(rule, total, day, where))
                except (CheckCrashed, SuiteDoesNotFit) as error:
                    results.append(unanswered(rule, error))
        return SuiteResult(
            suite=suite.name,
            table=self.table.name,
            version=self.version,
            rows=total,
            results=tuple(results),
            docs_path=None,
            elapsed=timedelta(seconds=time.monotonic() - started),
        )

    def _counted(
        self,
        conditions: Mapping[SuiteRule, Condition],
        where: str,
        failed: dict[SuiteRule, CheckResult],
    ) -> tuple[int, dict[SuiteRule, tuple[int, int]]]:
        """The number of rows; for each rule of rows to how many it applies, and how many fail.

        In one scan. Where that fails, rule by rule, so that only those are `failed` which do.
        """

        def count(*rules: SuiteRule) -> list[int]:
            select, values = counting(conditions[rule] for rule in rules)
            sql = f"SELECT {select} FROM {BATCH} WHERE {where}"  # noqa: S608
            [row] = self._query(sql, values, rules[0] if len(rules) == 1 else None)
            return [*row]

        try:
            total, *counts = count(*conditions)
            pairs = zip(counts[::2], counts[1::2], strict=True)
            return total, dict(zip(conditions, pairs, strict=True))
        except CheckCrashed:
            [total], counted = count(), {}
        for rule in conditions:
            try:
                _, applies, breaks = count(rule)
            except CheckCrashed as error:
                failed[rule] = unanswered(rule, error)
            else:
                counted[rule] = (applies, breaks)
        return total, counted

    def failing_rows(
        self, rule: SuiteRule, *, limit: int = 50, day: date | None = None, personal: bool = False
    ) -> FailingRows:
        """Rows that break the rule, at most `limit`; with `personal` also values marked so."""
        search = search_of(rule, self.rows.schema)
        if search is None:
            return FailingRows(rule.name, 0, (), ())
        columns = self._columns(search)
        where = self._on(day, columns)
        shown = [c for c in columns if personal or self._is_open(c, of_table=search.of_table)]
        first = [c for c in shown if c in columns_of(rule.question)]
        order = f" ORDER BY {', '.join(map(quoted, first))}" if first else ""
        source = f"FROM ({search.sql}) AS failing WHERE {where}"
        rows = self._query(
            f"SELECT {', '.join(map(quoted, shown))} {source}{order} LIMIT {limit:d}",
            search.values,
            rule,
        )
        [(count,)] = self._query(f"SELECT count(*) {source}", search.values, rule)
        return FailingRows(rule.name, count, tuple(shown), tuple(rows))

    def failures_by_day(self, rule: SuiteRule) -> dict[date, int]:
        """How many rows of each day break the rule; empty where its rows have no day."""
        search, daily = search_of(rule, self.rows.schema), self.table.days
        if search is None or daily is None:
            return {}
        if isinstance(rule.question, UsualRows):
            day = "day"
        elif daily.column in self._columns(search):
            day = local_day(self.table)
        else:
            return {}
        sql = f"SELECT {day} AS of_day, count(*) FROM ({search.sql}) AS failing GROUP BY 1"  # noqa: S608
        counts = self._query(f"{sql} ORDER BY 1", search.values, rule)
        return {of_day: count for of_day, count in counts if of_day is not None}

    def _of_table(self, rule: SuiteRule, total: int, day: date | None, where: str) -> CheckResult:
        match rule.question:
            case Columns(names):
                actual, declared = set(self.rows.schema.names), set(names)
                return result_of_columns(
                    rule, missing=declared - actual, unexpected=actual - declared
                )
            case RowCount(low, high):
                fits = (low is None or total >= low) and (high is None or total <= high)
                return result_of_row_count(rule, total, passed=fits)
            case Unique(columns):
                not_null = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in columns)
                sql = f"SELECT count(*) FROM {BATCH} WHERE ({where}) AND {not_null}"  # noqa: S608
                [(evaluated,)] = self._query(sql, (), rule)
                return _of_rows(rule, evaluated, self.failing_rows(rule, limit=0, day=day).count)
            case _:
                count = self.failing_rows(rule, limit=0, day=day).count
                return result_of_search(rule, count, passed=count == 0)

    def _on(self, day: date | None, columns: Sequence[str]) -> str:
        """The day as a condition on the rows of a search; false where these have no day."""
        if day is None:
            return EVERY_ROW
        if self.table.days is not None and self.table.days.column in columns:
            return on_days(self.table, [day])
        return f"day = CAST('{day.isoformat()}' AS DATE)" if "day" in columns else "false"

    def _is_open(self, column: str, *, of_table: bool) -> bool:
        """Whether a column may be shown. A query may rename a personal value."""
        if column in self.table.personal:
            return False
        own = of_table or not self.table.personal
        return own or column in self.rows.schema.names or column in OWN_COLUMNS

    def _columns(self, search: Search) -> list[str]:
        sql = f"DESCRIBE SELECT * FROM ({search.sql}) AS failing"  # noqa: S608
        return [name for name, *_ in self._query(sql, search.values)]

    def _query(
        self, sql: str, values: Sequence[object] = (), rule: SuiteRule | None = None
    ) -> list[Any]:
        try:
            with suite_connection({BATCH: self.rows}) as duck:
                return duck.execute(sql, list(values) or None).fetchall()
        except duckdb.Error as error:
            # DuckDB's message may quote a value.
            reason = type(error).__name__ if self.table.personal else str(error).splitlines()[0]
            name = f"rule '{rule.name}'" if rule else f"a rule of '{self.table.name}'"
            raise CheckCrashed(f"{name} could not be evaluated: {reason}") from error


@contextmanager
def suite_connection(tables: Mapping[str, Rows]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB connection that sorts and names functions as Spark, as far as suites need it."""
    with connection(tables) as duck:
        duck.execute("SET SESSION default_null_order = 'nulls_first'")
        duck.execute("CREATE OR REPLACE TEMP MACRO size(items) AS len(items)")
        yield duck


def _of_rows(rule: SuiteRule, evaluated: int, unexpected: int) -> CheckResult:
    at_most = getattr(rule.question, "at_most", None)
    if at_most is not None:
        return result_of_search(rule, unexpected, passed=unexpected <= at_most)
    share = (evaluated - unexpected) / evaluated if evaluated else 1.0
    return result_of_rows(
        rule, evaluated=evaluated, unexpected=unexpected, passed=share >= rule.at_least
    )
