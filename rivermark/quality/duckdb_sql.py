"""The rows that break a rule, as SQL of DuckDB.

Limits are bound as values. The table is read as `batch`; conditions and queries are those of the
suites, declared in code.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from typing import Final

import duckdb
import pyarrow as pa

from rivermark.lake.day_predicates import days_of, is_date, ranges
from rivermark.lake.duckdb_days import duckdb_day
from rivermark.lake.quoting import quoted
from rivermark.model.errors import DeclarationError
from rivermark.model.question import (
    Between,
    Columns,
    Matches,
    NoRowsFrom,
    NoRowsWhere,
    NotNull,
    OfGreatExpectations,
    OneOf,
    Ordered,
    RowCount,
    Unique,
    UsualRows,
)
from rivermark.model.rule import SuiteRule
from rivermark.model.table import Table
from rivermark.quality.column_kind import kinds_of_arrow
from rivermark.quality.condition_text import columns_of, pattern_fault
from rivermark.quality.errors import CheckCrashed, SuiteDoesNotFit
from rivermark.quality.fitting import fitted
from rivermark.quality.volume_profile import DUCKDB, usual_rows

BATCH: Final = "batch"


@dataclass(frozen=True)
class Condition:
    """Conditions on one row: `broken` if it breaks the rule, `applies` if the rule evaluates it.

    `values` are the parameters of `broken`; `applies` has none.
    """

    broken: str
    applies: str = "true"
    values: tuple[object, ...] = ()

    @property
    def failing(self) -> str:
        """The rows to which the rule applies and that break it."""
        return f"({self.applies}) AND coalesce(({self.broken}), false)"


@dataclass(frozen=True)
class Search:
    """A query for what breaks a rule; `of_table` if it returns rows of the table itself."""

    sql: str
    values: tuple[object, ...] = ()
    of_table: bool = True


def condition_of(rule: SuiteRule, schema: pa.Schema) -> Condition | None:
    """The condition by which a row alone breaks the rule; None where one row does not suffice."""
    columns = kinds_of_arrow(schema)
    match fitted(rule, columns).question:
        case NotNull(column):
            return Condition(f"{quoted(column)} IS NULL")
        case Between(column) as range_:
            return _between(range_, is_float=columns[column].family == "float")
        case OneOf(column, values):
            name = quoted(column)
            probe = f"CAST({name} AS DOUBLE)" if columns[column].family == "float" else name
            parameters = ", ".join("?" for _ in values)
            return Condition(f"{probe} NOT IN ({parameters})", f"{name} IS NOT NULL", values)
        case Matches(column, pattern):
            name = quoted(column)
            broken = f"NOT regexp_full_match({name}, ?)"
            if fault := pattern_fault(pattern):
                raise SuiteDoesNotFit(f"pattern {pattern}: {fault}", rule=rule.name)
            return Condition(broken, f"{name} IS NOT NULL", (pattern,))
        case Ordered(first, second, strictly):
            a, b = quoted(first), quoted(second)
            both = f"({a} IS NOT NULL AND {b} IS NOT NULL)"
            return Condition(f"NOT ({a} {'<' if strictly else '<='} {b})", both)
        case NoRowsWhere(text):
            try:
                columns_of(text, schema)
            except DeclarationError as error:
                raise SuiteDoesNotFit(str(error), rule=rule.name) from None
            # What is unknown may be forbidden, too.
            return Condition(f"coalesce((\n{text}\n), true)")
        case _:
            return None


def search_of(rule: SuiteRule, schema: pa.Schema) -> Search | None:
    """The query for what breaks the rule.

    None for questions about the table as a whole, and for those of Great Expectations alone.
    """
    condition = condition_of(rule, schema)
    if condition is not None:
        return Search(f"SELECT * FROM {BATCH} WHERE {condition.failing}", condition.values)  # noqa: S608
    match rule.question:
        case Unique(columns):
            names = ", ".join(quoted(c) for c in columns)
            not_null = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in columns)
            return Search(
                f"SELECT * FROM {BATCH} WHERE ({names}) IN (SELECT ({names}) FROM {BATCH} "  # noqa: S608
                f"WHERE {not_null} GROUP BY {names} HAVING count(*) > 1)"
            )
        case NoRowsFrom(query):
            return Search(_query(rule, query), of_table=False)
        case UsualRows(column):
            is_date = pa.types.is_date(schema.field(column).type)
            query = usual_rows(rule.question, DUCKDB, is_date=is_date)
            return Search(query.format(batch=BATCH), of_table=False)
        case Columns() | RowCount() | OfGreatExpectations():
            return None
    raise AssertionError(rule.question)


def count_by_rule(
    rules: Iterable[SuiteRule],
    schema: pa.Schema,
    query: Callable[[str, Sequence[object], SuiteRule | None], Sequence[int]],
    answering: Callable[[SuiteRule], AbstractContextManager[None]],
) -> tuple[int, dict[SuiteRule, tuple[int, int]]]:
    """The number of rows; for each rule of rows to how many it applies, and how many break it.

    `query` returns the row of a list of expressions, and is told the rule where it is asked for one
    alone; `answering` takes the error of a rule that cannot be evaluated. All rules are counted in
    one scan; where that fails, each in its own, so that only those have no numbers which fail.
    """
    conditions: dict[SuiteRule, Condition] = {}
    for rule in rules:
        with answering(rule):
            if (condition := condition_of(rule, schema)) is not None:
                conditions[rule] = condition

    def count(*chosen: SuiteRule) -> Sequence[int]:
        select, values = _counting(conditions[rule] for rule in chosen)
        return query(select, values, chosen[0] if len(chosen) == 1 else None)

    try:
        total, *counts = count(*conditions)
        pairs = zip(counts[::2], counts[1::2], strict=True)
        return total, dict(zip(conditions, pairs, strict=True))
    except (duckdb.Error, CheckCrashed):
        [total] = count()
    counted: dict[SuiteRule, tuple[int, int]] = {}
    for rule in conditions:
        with answering(rule):
            _, applies, breaks = count(rule)
            counted[rule] = (applies, breaks)
    return total, counted


def _counting(conditions: Iterable[Condition]) -> tuple[str, tuple[object, ...]]:
    """The selection of one scan: all rows, then for each condition where it applies and fails."""
    parts, values = ["count(*)"], list[object]()
    for condition in conditions:
        parts.append(f"count(*) FILTER (WHERE {condition.applies})")
        parts.append(f"count(*) FILTER (WHERE {condition.failing})")
        values += condition.values
    return ", ".join(parts), tuple(values)


def on_days(table: Table, days: Collection[date]) -> str:
    """The rows of those days: dates and instants that we made, and a declared name."""
    daily, parts = days_of(table), []
    name = quoted(daily.column)
    for first, last in ranges(days):
        if is_date(table):
            parts.append(f"{name} BETWEEN DATE '{first}' AND DATE '{last}'")
            continue
        start, end = daily.bounds(first, last)
        parts.append(
            f"({name} >= TIMESTAMPTZ '{start.isoformat()}' AND "
            f"{name} < TIMESTAMPTZ '{end.isoformat()}')"
        )
    return " OR ".join(parts)


def reason_of(error: duckdb.Error, table: Table) -> str:
    """The message of DuckDB; of a table with personal columns only the kind of error."""
    # The message may quote a value.
    return type(error).__name__ if table.personal else str(error).splitlines()[0]


def local_day(table: Table) -> str:
    """The day to which a row belongs."""
    daily = days_of(table)
    name = quoted(daily.column)
    return name if is_date(table) else duckdb_day(name, daily.zone)


def _query(rule: SuiteRule, query: str) -> str:
    try:
        return query.format(batch=BATCH)
    except (LookupError, ValueError, AttributeError):
        raise SuiteDoesNotFit(
            "braces stand for {batch} only: write {{ and }} for the signs", rule=rule.name
        ) from None


def _between(range_: Between, *, is_float: bool) -> Condition:
    name = quoted(range_.column)
    compared = f"CAST({name} AS DOUBLE)" if is_float else name
    limits = (
        (range_.low, ">="),
        (range_.high, "<" if range_.high_excluded else "<="),
    )
    parts = [f"{compared} {sign} ?" for limit, sign in limits if limit is not None]
    broken = f"NOT ({' AND '.join(parts)})"
    if is_float:
        # Not-a-number is above every number in the order of SQL, and in no range of ours.
        broken = f"({broken} OR isnan({name}))"
    values = tuple(limit for limit, _ in limits if limit is not None)
    return Condition(broken, f"{name} IS NOT NULL", values)
