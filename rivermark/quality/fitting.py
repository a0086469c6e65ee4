"""A rule fitted to the columns of a table: limits and values as the columns themselves hold them.

So no limit is rounded where it is compared: for whole numbers and decimals it becomes the next
value that the column can hold; for floats it is the nearest double, with which a float of 32 bits
is compared as the double that it is. A float as a limit means what is written (0.1 is a tenth). A
rule that does not fit is refused in one sentence.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, time
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any, Final

from rivermark.model.limit import Limit
from rivermark.model.question import (
    Between,
    Matches,
    OneOf,
    Ordered,
    UsualRows,
    columns_of,
)
from rivermark.model.rule import SuiteRule
from rivermark.quality.column_kind import EXACT, ColumnKind, Family
from rivermark.quality.errors import SuiteDoesNotFit

HOLDS: Final[dict[type, tuple[Family, ...]]] = {
    str: ("text",),
    bool: ("boolean",),
    int: ("exact", "float"),
}


def fitted(rule: SuiteRule, columns: Mapping[str, ColumnKind]) -> SuiteRule:
    """The rule with limits and values that are exactly those of its columns.

    Raises:
        SuiteDoesNotFit: A column is missing, or its type has no order with a limit or never holds
            a value.
    """
    question = rule.question
    named = (question.column,) if isinstance(question, UsualRows) else columns_of(question)
    missing = [column for column in named if column not in columns]
    if missing:
        raise SuiteDoesNotFit(
            f"the table has no column {', '.join(missing)}; it has {', '.join(columns)}",
            rule=rule.name,
        )
    try:
        match question:
            case Between(column):
                return replace(rule, question=_between(question, columns[column]))
            case OneOf(column):
                return replace(rule, question=_one_of(question, columns[column]))
            case Matches(column) if columns[column].family != "text":
                raise SuiteDoesNotFit(_holds_no(column, columns[column], "such value as a text"))
            case Ordered(first, second) if not columns[first].in_one_order(columns[second]):
                raise SuiteDoesNotFit(
                    f"{first} and {second} have no order of numbers or times in which they compare "
                    f"exactly: {columns[first].shown}, {columns[second].shown}"
                )
    except SuiteDoesNotFit as error:
        raise SuiteDoesNotFit(error.reason, rule=rule.name) from None
    return rule


def _between(question: Between, kind: ColumnKind) -> Between:
    low, high = (_comparable(question, limit, kind) for limit in (question.low, question.high))
    fits = replace(question, low=low, high=high)
    return _exactly(fits, kind) if kind.family == "exact" else fits


def _comparable(question: Between, limit: Limit | None, kind: ColumnKind) -> Limit | None:
    """The limit as a value of the column's kind: never a text beside a number or a time."""
    if limit is None:
        return None
    if isinstance(limit, datetime):
        if kind.family == "instant":
            return limit
        if kind.family == "date" and limit.timetz() == time(tzinfo=UTC):
            return limit.date()
    elif isinstance(limit, date):
        if kind.family == "date":
            return limit
    elif kind.family == "exact":
        return Decimal(repr(limit)) if isinstance(limit, float) else Decimal(limit)
    elif kind.family == "float":
        with suppress(OverflowError):
            nearest = float(limit)
            if not isinstance(limit, int) or int(nearest) == limit:
                return nearest
        raise SuiteDoesNotFit(f"column {question.column}: no double is exactly {limit}")
    raise SuiteDoesNotFit(f"column {question.column}: {kind.shown} has no order with {limit!r}")


def _exactly(question: Between, kind: ColumnKind) -> Between:
    """The range in values that the column can hold; a limit beyond all of them is left out."""
    smallest, largest = kind.bounds
    low, high = (
        None if limit is None else Decimal(limit)  # type: ignore[arg-type] # no times are here
        for limit in (question.low, question.high)
    )
    if low is not None:
        low = _rounded(low, kind, ROUND_CEILING)
    if high is not None:
        high = _rounded(high, kind, ROUND_CEILING if question.high_excluded else ROUND_FLOOR)
    below = high is not None and (high <= smallest if question.high_excluded else high < smallest)
    if below or (low is not None and low > largest):
        raise SuiteDoesNotFit(
            f"column {question.column}: no value of {kind.shown} lies in this range"
        )
    if high is not None and high > largest:
        high = None
    if low is not None and low <= smallest:
        low = None
    if low is None and high is None:
        low = smallest
    return replace(
        question,
        low=_held(low, kind),
        high=_held(high, kind),
        high_excluded=question.high_excluded and high is not None,
    )


def _rounded(limit: Decimal, kind: ColumnKind, rounding: str) -> Decimal:
    if abs(limit) >= 10**39:  # Beyond all columns: not to be written out.
        return Decimal(10**39).copy_sign(limit)
    return limit.quantize(Decimal(1).scaleb(-kind.scale), rounding, EXACT)


def _held(limit: Decimal | None, kind: ColumnKind) -> Limit | None:
    return int(limit) if limit is not None and kind.bits else limit


def _one_of(question: OneOf, kind: ColumnKind) -> OneOf:
    """The values that the column can hold, as such; the others equal none."""
    sort = type(question.values[0])
    if kind.family not in HOLDS[sort]:
        raise SuiteDoesNotFit(
            _holds_no(question.column, kind, f"such value as {question.values[0]!r}")
        )
    values: tuple[Any, ...] = question.values
    if kind.family == "exact":
        smallest, largest = kind.bounds
        fitting = [v for v in map(int, question.values) if smallest <= v <= largest]
        values = tuple(fitting if kind.bits else map(Decimal, fitting))
    elif kind.family == "float":
        # With -0.0, which a set of Java's tells from 0.0.
        exact = [v for v in map(int, question.values) if abs(v) < 2**1000 and int(float(v)) == v]
        values = tuple(s * float(v) for v in exact for s in ((1, -1) if v == 0 else (1,)))
    if not values:
        raise SuiteDoesNotFit(_holds_no(question.column, kind, "of these values"))
    return replace(question, values=values)


def _holds_no(column: str, kind: ColumnKind, what: str) -> str:
    return f"column {column} of type {kind.shown} holds no {what}"
