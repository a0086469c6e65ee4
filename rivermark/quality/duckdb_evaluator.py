"""Suites evaluated by DuckDB in the driver: of tables, staged rows, a day, and the rows that fail.

The rows are an Arrow table or the dataset of one version of a table, never of a moving one. What
exceeds the memory of queries goes to the disk.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import duckdb
import pyarrow as pa

from rivermark.lake.quoting import quoted
from rivermark.lake.sql import connection
from rivermark.model.check import CheckResult, Example
from rivermark.model.question import (
    Columns,
    NoRowsWhere,
    NotNull,
    RowCount,
    Unique,
    UsualRows,
    columns_of,
)
from rivermark.model.rule import SuiteRule
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.duckdb_sql import (
    BATCH,
    Search,
    count_by_rule,
    local_day,
    on_days,
    reason_of,
    search_of,
)
from rivermark.quality.errors import CheckCrashed, SuiteDoesNotFit, Unanswered
from rivermark.quality.result import (
    FailingRows,
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

logger = logging.getLogger(__name__)

EXAMPLES: Final = 5
LONGEST_EXAMPLE: Final = 200
"""Characters of a value that are shown; a payload of megabytes would make a page unusable."""
EVERY_ROW: Final = "true"
OWN_COLUMNS: Final = ("day", "row_count", "usual", "end_before")
"""Columns that our own queries add to those of a table."""


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
        that says so. Expectations that only Great Expectations has (`Suite.without_spark`) have
        none here.
        """
        suite = suite.without_spark
        started = time.monotonic()
        where = EVERY_ROW if day is None else on_days(self.table, [day])
        results: dict[SuiteRule, CheckResult] = {}
        answering = partial(_answering, suite, results)
        total, counted = count_by_rule(
            suite.rules,
            self.rows.schema,
            lambda select, values, rule: self._query(
                f"SELECT {select} FROM {BATCH} WHERE {where}",  # noqa: S608
                values,
                rule,
            )[0],
            answering,
        )
        for rule in suite.rules:
            if rule in results:
                continue
            # Of a day without rows its usual number is a rule, of an empty table it is not.
            evaluated = (Columns, RowCount) if day is None else (Columns, RowCount, UsualRows)
            if not total and not isinstance(rule.question, evaluated):
                results[rule] = not_evaluated(rule, passed=suite.may_be_empty)
            elif rule in counted:
                results[rule] = _of_rows(rule, *counted[rule])
            else:
                with answering(rule):
                    results[rule] = self._of_table(rule, total, day, where)
        return SuiteResult(
            suite=suite.name,
            table=self.table.name,
            version=self.version,
            rows=total,
            results=tuple(results[rule] for rule in suite.rules),
            docs_path=None,
            elapsed=timedelta(seconds=time.monotonic() - started),
        )

    def failing_rows(
        self,
        rule: SuiteRule,
        *,
        limit: int = 50,
        day: date | None = None,
        personal: bool = False,
        in_order: bool = True,
    ) -> FailingRows:
        """Rows that break the rule, at most `limit`; with `personal` also values marked so.

        They are the first by the columns of the rule, or, not `in_order`, as they lie.
        """
        search = self._search(rule)
        if search is None:
            return FailingRows(rule.name, 0, (), ())
        columns = self._columns(search, rule)
        where = self._on(day, columns)
        shown = [c for c in columns if personal or self._is_open(c, of_table=search.of_table)]
        first = [c for c in shown if c in columns_of(rule.question)]
        order = f" ORDER BY {', '.join(map(quoted, first))}" if first and in_order else ""
        source = f"FROM ({search.sql}) AS failing WHERE {where}"
        rows = self._sample(
            shown, lambda select: f"SELECT {select} {source}{order} LIMIT {limit:d}", search, rule
        )
        [(count,)] = self._query(f"SELECT count(*) {source}", search.values, rule)
        return FailingRows(rule.name, count, tuple(shown), tuple(rows))

    def examples_of(self, rule: SuiteRule, result: CheckResult) -> tuple[Example, ...]:
        """Some of what failed, as text; none where a personal column is involved."""
        named = columns_of(rule.question)
        of_values = named and not isinstance(rule.question, NotNull)
        shown = of_values or isinstance(rule.question, NoRowsWhere)
        is_open = set(named).isdisjoint(self.table.personal)
        if result.passed or result.error or not (shown and is_open):
            return ()
        try:
            # Repeated rows are shown beside each other.
            repeated = isinstance(rule.question, Unique)
            failing = self.failing_rows(rule, limit=EXAMPLES, in_order=repeated)
        except Exception as error:
            # Whether the rule holds is known already. The message may quote a value.
            logger.warning("no examples of '%s': %s", rule.name, type(error).__name__)
            return ()
        rows = (dict(zip(failing.columns, row, strict=True)) for row in failing.rows)
        return tuple({c: _as_text(row[c]) for c in named or failing.columns} for row in rows)

    def failures_by_day(self, rule: SuiteRule) -> dict[date, int]:
        """Number of rows of each day that break the rule; empty where its rows have no day.

        Days after 9999 are left out: Python has none.
        """
        search, daily = self._search(rule), self.table.days
        if search is None or daily is None:
            return {}
        if isinstance(rule.question, UsualRows):
            day = "day"
        elif daily.column in self._columns(search, rule):
            day = local_day(self.table)
        else:
            return {}
        sql = (
            f"SELECT {day} AS of_day, count(*) FROM ({search.sql}) AS failing "  # noqa: S608
            f"WHERE {day} BETWEEN DATE '{date.min}' AND DATE '{date.max}' GROUP BY 1 ORDER BY 1"
        )
        return dict(self._query(sql, search.values, rule))

    def _search(self, rule: SuiteRule) -> Search | None:
        try:
            return search_of(rule, self.rows.schema)
        except SuiteDoesNotFit as error:
            raise error.of_suite(self.table.name) from None

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
        """Returns True if a column may be shown. A query may rename a personal value."""
        if column in self.table.personal:
            return False
        own = of_table or not self.table.personal
        return own or column in self.rows.schema.names or column in OWN_COLUMNS

    def _columns(self, search: Search, rule: SuiteRule) -> list[str]:
        sql = f"DESCRIBE SELECT * FROM ({search.sql}) AS failing"  # noqa: S608
        return [name for name, *_ in self._query(sql, search.values, rule)]

    def _sample(
        self,
        columns: Sequence[str],
        query: Callable[[str], str],
        search: Search,
        rule: SuiteRule,
    ) -> list[Any]:
        """Rows of a search; as text where Python has no such values, as times after 9999."""
        names = [quoted(column) for column in columns]
        try:
            return self._query(query(", ".join(names)), search.values, rule)
        except (ValueError, OverflowError, CheckCrashed):
            texts = ", ".join(f"CAST({name} AS VARCHAR) AS {name}" for name in names)
            return self._query(query(texts), search.values, rule)

    def _query(
        self, sql: str, values: Sequence[object] = (), rule: SuiteRule | None = None
    ) -> list[Any]:
        try:
            with suite_connection({BATCH: self.rows}) as duck:
                return duck.execute(sql, list(values) or None).fetchall()
        except duckdb.Error as error:
            reason, name = reason_of(error, self.table), rule.name if rule else ""
            raise CheckCrashed(reason, suite=self.table.name, rule=name) from error


@contextmanager
def suite_connection(tables: Mapping[str, Rows]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB connection to which a division by zero is null, as in all conditions."""
    with connection(tables) as duck:
        duck.execute("SET SESSION default_null_order = 'nulls_first_on_asc_last_on_desc'")
        for setting in ("ieee_floating_point_ops", "error_on_division_by_zero"):
            duck.execute(f"SET SESSION {setting} = false")
        yield duck


@contextmanager
def _answering(
    suite: Suite, results: dict[SuiteRule, CheckResult], rule: SuiteRule
) -> Iterator[None]:
    """Keep as its result that a rule could not be evaluated, and go on with the others."""
    try:
        yield
    except Unanswered as error:
        results[rule] = unanswered(suite, rule, error)


def _as_text(value: object) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).isoformat(" ").replace("+00:00", " UTC")[:LONGEST_EXAMPLE]
    return str(value)[:LONGEST_EXAMPLE]


def _of_rows(rule: SuiteRule, evaluated: int, unexpected: int) -> CheckResult:
    at_most = getattr(rule.question, "at_most", None)
    if at_most is not None:
        return result_of_search(rule, unexpected, passed=unexpected <= at_most)
    share = (evaluated - unexpected) / evaluated if evaluated else 1.0
    return result_of_rows(
        rule, evaluated=evaluated, unexpected=unexpected, passed=share >= rule.at_least
    )
