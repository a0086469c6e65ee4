"""Judging rows by a suite in this process, without a JVM: a day, staged rows, or bad rows to show.

The same rules, with the same answers as Great Expectations gives on Spark, in milliseconds. The
rows are an Arrow table or the data set of one version of a table, never of a moving one.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import duckdb
import pyarrow as pa

from rivermark.lake.sql import quoted
from rivermark.model.question import Columns, RowCount, Unique, UsualRows, columns_asked
from rivermark.model.rule import Rule
from rivermark.model.suite import Suite
from rivermark.model.table import Table
from rivermark.quality.duckdb_sql import (
    BATCH,
    Condition,
    condition_of,
    local_day,
    on_days,
    search_of,
)
from rivermark.quality.errors import CheckCrashed
from rivermark.quality.gx.results import not_judged, read_result
from rivermark.quality.result import ExpectationResult, SuiteResult

if TYPE_CHECKING:
    from pyarrow import dataset

    Rows: TypeAlias = pa.Table | dataset.Dataset

EVERY_ROW: Final = "true"
NUMBERS: Final = ("day", "row_count", "usual", "end_before")
"""Columns that our own queries add to those of a table."""


class Answers(NamedTuple):
    """How many rows were looked at, and the answer to each rule."""

    rows: int
    results: tuple[ExpectationResult, ...]


@dataclass(frozen=True)
class BadRows:
    """Some of the rows that break a rule, and how many there are; personal values are left out."""

    rule: str
    count: int
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]


class Judge:
    """Answers of one set of rows. Open it with `judging`."""

    def __init__(self, engine: duckdb.DuckDBPyConnection, schema: pa.Schema, table: Table) -> None:
        """Remember whom to ask, and how the rows lie in days."""
        self._engine = engine
        self._schema = schema
        self._table = table

    def answers(self, suite: Suite, day: date | None = None) -> Answers:
        """The answer to each rule, of all rows or of those of one day.

        For a day, rules that compare rows (keys, windows, usual numbers) are asked of the whole
        table, and what they find on that day counts.
        """
        where = EVERY_ROW if day is None else on_days(self._table, [day])
        conditions = {
            rule.name: found
            for rule in suite.rules
            if (found := condition_of(rule, self._schema)) is not None
        }
        total, counted = self._count(conditions, where)
        results = []
        for rule in suite.rules:
            if not total and not isinstance(rule.asks, Columns | RowCount | UsualRows):
                results.append(not_judged(rule, passed=suite.may_be_empty))
            elif rule.name in counted:
                asked, broken = counted[rule.name]
                results.append(_of_conditions(rule, total, asked, broken))
            else:
                results.append(self._of_table(rule, total, day, where))
        return Answers(total, tuple(results))

    def bad_rows(
        self, rule: Rule, *, limit: int = 50, day: date | None = None, personal: bool = False
    ) -> BadRows:
        """Rows that break the rule; without values of columns marked personal, unless asked for."""
        search = search_of(rule, self._schema)
        if search is None:
            return BadRows(rule.name, 0, (), ())
        given = self._columns(search.sql, search.values)
        where = self._on(day, given)
        columns = [c for c in given if personal or self._is_open(c, of_table=search.of_table)]
        shown = ", ".join(quoted(c) for c in columns)
        first = [c for c in columns if c in columns_asked(rule.asks)]
        order = f" ORDER BY {', '.join(quoted(c) for c in first)}" if first else ""
        rows = self._ask(
            f"SELECT {shown} FROM ({search.sql}) AS found WHERE {where}{order} LIMIT {limit:d}",  # noqa: S608
            search.values,
            rule,
        )
        [(count,)] = self._ask(
            f"SELECT count(*) FROM ({search.sql}) AS found WHERE {where}",  # noqa: S608
            search.values,
            rule,
        )
        return BadRows(rule.name, int(count), tuple(columns), tuple(rows))

    def by_day(self, rule: Rule) -> dict[date, int]:
        """How many rows of each day break the rule; nothing where they have no day."""
        search, daily = search_of(rule, self._schema), self._table.days
        if search is None or daily is None:
            return {}
        columns = self._columns(search.sql, search.values)
        if isinstance(rule.asks, UsualRows):
            day = "day"
        elif daily.column in columns:
            day = local_day(self._table)
        else:
            return {}
        found = self._ask(
            f"SELECT {day} AS of_day, count(*) FROM ({search.sql}) AS found "  # noqa: S608
            "GROUP BY 1 ORDER BY 1",
            search.values,
            rule,
        )
        return {of_day: int(count) for of_day, count in found if of_day is not None}

    def _of_table(self, rule: Rule, total: int, day: date | None, where: str) -> ExpectationResult:
        match rule.asks:
            case Columns(names):
                have, want = set(self._schema.names), set(names)
                wrong = {"missing": sorted(want - have), "unexpected": sorted(have - want)}
                wrong = {how: found for how, found in wrong.items() if found}
                numbers: dict[str, Any] = {"details": {"mismatched": wrong}}
                return read_result(rule, success=not wrong, numbers=numbers)
            case RowCount(low, high):
                fits = (low is None or total >= low) and (high is None or total <= high)
                return read_result(rule, success=fits, numbers={"observed_value": total})
            case _:
                pass
        found = self.bad_rows(rule, limit=0, day=day).count
        if isinstance(rule.asks, Unique):
            given = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in rule.asks.columns)
            sql = f"SELECT count(*) FROM {BATCH} WHERE ({where}) AND {given}"  # noqa: S608
            [(asked,)] = self._ask(sql, (), rule)
            return _of_conditions(rule, total, int(asked), found)
        return read_result(rule, success=found == 0, numbers={"observed_value": found})

    def _count(
        self, conditions: dict[str, Condition], where: str
    ) -> tuple[int, dict[str, tuple[int, int]]]:
        """All rows, and for each condition the rows it judges and those that break it: one scan."""
        parts, values = ["count(*)"], list[object]()
        for found in conditions.values():
            parts.append(f"count(*) FILTER (WHERE {found.asked})")
            parts.append(
                f"count(*) FILTER (WHERE ({found.asked}) AND coalesce(({found.broken}), false))"
            )
            values += found.values
        sql = f"SELECT {', '.join(parts)} FROM {BATCH} WHERE {where}"  # noqa: S608
        [(total, *counts)] = self._ask(sql, values, None)
        pairs = zip(counts[::2], counts[1::2], strict=True)
        return int(total), dict(zip(conditions, pairs, strict=True))

    def _on(self, day: date | None, columns: Sequence[str]) -> str:
        """The day as a condition on what a search gives; no row of it where it has no day."""
        if day is None:
            return EVERY_ROW
        if self._table.days is not None and self._table.days.column in columns:
            return on_days(self._table, [day])
        return f"day = CAST('{day.isoformat()}' AS DATE)" if "day" in columns else "false"

    def _is_open(self, column: str, *, of_table: bool) -> bool:
        """Whether a column may be shown. A query may give a personal value another name."""
        if column in self._table.personal:
            return False
        own = of_table or not self._table.personal
        return own or column in self._schema.names or column in NUMBERS

    def _columns(self, sql: str, values: Sequence[object]) -> list[str]:
        self._ask(f"SELECT * FROM ({sql}) AS found LIMIT 0", values, None)  # noqa: S608
        return [column[0] for column in self._engine.description or ()]

    def _ask(self, sql: str, values: Sequence[object], rule: Rule | None) -> list[Any]:
        try:
            return self._engine.execute(sql, list(values) or None).fetchall()
        except duckdb.Error as error:
            # What DuckDB says may quote a value.
            told = type(error).__name__ if self._table.personal else str(error).splitlines()[0]
            name = f"rule '{rule.name}'" if rule else f"a rule of '{self._table.name}'"
            raise CheckCrashed(f"{name} could not be evaluated: {told}") from error


@contextmanager
def judging(rows: Rows, table: Table) -> Iterator[Judge]:
    """A judge of these rows."""
    with engine_with({BATCH: rows}) as engine:
        yield Judge(engine, rows.schema, table)


@contextmanager
def engine_with(tables: Mapping[str, Rows]) -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine that has these rows. One thread: the streams on this machine come first.

    It sorts and names functions as Spark does, as far as conditions of suites need it.
    """
    with duckdb.connect(":memory:", config={"threads": 1, "memory_limit": "1GB"}) as engine:
        engine.execute("SET TimeZone = 'UTC'")
        engine.execute("SET default_null_order = 'nulls_first'")
        engine.execute("CREATE MACRO size(items) AS len(items)")
        for name, rows in tables.items():
            engine.register(name, rows)
        yield engine


def judge_here(
    rows: Rows, suite: Suite, table: Table, *, version: int, day: date | None = None
) -> SuiteResult:
    """The answers to all rules of the suite, of all rows or of one day of the table.

    Raises:
        CheckCrashed: A rule could not be evaluated; the data are not to blame.
        SuiteDoesNotFit: The suite asks for a column or a comparison that the table does not offer.
    """
    started = time.monotonic()
    with judging(rows, table) as judge:
        found = judge.answers(suite, day)
    return SuiteResult(
        suite=suite.name,
        table=table.name,
        version=version,
        rows=found.rows,
        results=found.results,
        docs_path=None,
        elapsed=timedelta(seconds=time.monotonic() - started),
    )


def _of_conditions(rule: Rule, total: int, asked: int, broken: int) -> ExpectationResult:
    if rule.at_least == 1.0 or not asked:
        enough = broken <= getattr(rule.asks, "at_most", 0)
    else:
        enough = (asked - broken) / asked >= rule.at_least
    numbers = {
        "observed_value": broken,
        "element_count": total,
        "missing_count": total - asked,
        "unexpected_count": broken,
    }
    return read_result(rule, success=enough, numbers=numbers)
