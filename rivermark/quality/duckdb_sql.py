"""The rows that break a rule, as SQL of DuckDB.

Written from the same questions as the translation for Great Expectations; a test holds both to the
same results. Limits are bound as values. The table is read as `batch`; conditions and queries are
those of the suites, declared in code, in the SQL that Spark and DuckDB share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from typing import Final

import duckdb
import pyarrow as pa

from rivermark.lake.day_predicates import days_of, is_date, ranges
from rivermark.lake.duckdb_days import duckdb_day
from rivermark.lake.sql import quoted
from rivermark.model.limit import Limit
from rivermark.model.question import (
    Between,
    Columns,
    Matches,
    NoRowsFrom,
    NoRowsWhere,
    NotNull,
    OneOf,
    Ordered,
    RowCount,
    Unique,
    UsualRows,
    columns_of,
)
from rivermark.model.rule import SuiteRule
from rivermark.model.table import Table
from rivermark.quality.errors import CheckCrashed, SuiteDoesNotFit
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
    _refuse_missing(rule, schema)
    match rule.question:
        case NotNull(column):
            return Condition(f"{quoted(column)} IS NULL")
        case Between():
            return _between(rule.question, schema.field(rule.question.column).type)
        case OneOf(column, values):
            _refuse_kind(rule, column, schema, _IS[type(values[0])])
            name = quoted(column)
            parameters = ", ".join("?" for _ in values)
            return Condition(f"{name} NOT IN ({parameters})", f"{name} IS NOT NULL", tuple(values))
        case Matches(column, pattern):
            _refuse_kind(rule, column, schema, _IS[str])
            name = quoted(column)
            # As Java reads it: a dot is any character but the end of a line.
            broken = f"NOT regexp_full_match({name}, ?, 'p')"
            return Condition(broken, f"{name} IS NOT NULL", (pattern,))
        case Ordered(first, second, strictly):
            if not _in_one_order(schema.field(first).type, schema.field(second).type):
                raise SuiteDoesNotFit(
                    f"rule '{rule.name}': {first} and {second} have no order of numbers or times: "
                    f"{schema.field(first).type}, {schema.field(second).type}"
                )
            a, b = quoted(first), quoted(second)
            both = f"({a} IS NOT NULL AND {b} IS NOT NULL)"
            return Condition(f"NOT ({a} {'<' if strictly else '<='} {b})", both)
        case NoRowsWhere(condition):
            return Condition(f"coalesce(({condition}), true)")
        case _:
            return None


def search_of(rule: SuiteRule, schema: pa.Schema) -> Search | None:
    """The query for what breaks the rule; None for questions about the table as a whole."""
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
            return Search(query.format(batch=BATCH), of_table=False)
        case UsualRows(column):
            is_date = pa.types.is_date(schema.field(column).type)
            query = usual_rows(rule.question, DUCKDB, is_date=is_date)
            return Search(query.format(batch=BATCH), of_table=False)
        case Columns() | RowCount():
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
    """What one scan selects: all rows, then for each condition where it applies and fails."""
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


def local_day(table: Table) -> str:
    """The day to which a row belongs."""
    daily = days_of(table)
    name = quoted(daily.column)
    return name if is_date(table) else duckdb_day(name, daily.zone)


def _between(range_: Between, kind: pa.DataType) -> Condition:
    name = quoted(range_.column)
    parts: list[str] = []
    values: list[object] = []
    for limit, sign in (
        (range_.low, ">="),
        (range_.high, "<" if range_.high_excluded else "<="),
    ):
        if limit is not None:
            parts.append(f"{name} {sign} ?")
            values.append(_comparable(range_.column, limit, kind))
    broken = f"NOT ({' AND '.join(parts)})"
    if pa.types.is_floating(kind):
        # Not-a-number is above every number in the order of SQL, and in no range of ours.
        broken = f"({broken} OR isnan({name}))"
    return Condition(broken, f"{name} IS NOT NULL", tuple(values))


def _comparable(column: str, limit: Limit, kind: pa.DataType) -> object:
    """The limit as a value of the column's kind: never a text beside a number or a time."""
    if isinstance(limit, datetime):
        if pa.types.is_timestamp(kind):
            return limit
        if pa.types.is_date(kind) and limit.timetz() == time(tzinfo=UTC):
            return limit.date()
    elif pa.types.is_date(kind) if isinstance(limit, date) else _is_number(kind):
        return limit
    raise SuiteDoesNotFit(f"column {column}: {kind} has no order with {limit!r}")


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


_IS: Final[dict[type, Callable[[pa.DataType], bool]]] = {
    str: _is_text,
    bool: pa.types.is_boolean,
    int: _is_number,
}


def _in_one_order(first: pa.DataType, second: pa.DataType) -> bool:
    """Whether values of both kinds compare as numbers or as times: text does not."""
    kinds = (_is_number, pa.types.is_timestamp, pa.types.is_date)
    return any(kind(first) and kind(second) for kind in kinds)


def _refuse_kind(
    rule: SuiteRule, column: str, schema: pa.Schema, fits: Callable[[pa.DataType], bool]
) -> None:
    kind = schema.field(column).type
    if not fits(kind):
        raise SuiteDoesNotFit(
            f"rule '{rule.name}': column {column} of type {kind} holds no such value"
        )


def _refuse_missing(rule: SuiteRule, schema: pa.Schema) -> None:
    named = (
        (rule.question.column,)
        if isinstance(rule.question, UsualRows)
        else columns_of(rule.question)
    )
    missing = [c for c in named if c not in schema.names]
    if missing:
        raise SuiteDoesNotFit(
            f"rule '{rule.name}': the table has no column {', '.join(missing)}; "
            f"it has {', '.join(schema.names)}"
        )
