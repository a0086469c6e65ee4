"""Expectations of a table, in words: each function returns the rules of one expectation.

Imported whole, so that a suite reads as sentences: `from rivermark.model import expectations as
expect`, then `expect.between("tips", 0, 10_000)`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql.types import StructType

from rivermark.model.check import Severity
from rivermark.model.declared import checked
from rivermark.model.errors import DeclarationError
from rivermark.model.limit import Limit, as_limit, in_words, refuse_disorder
from rivermark.model.question import (
    Between,
    Columns,
    Item,
    Matches,
    NoRowsFrom,
    NoRowsWhere,
    NotNull,
    OneOf,
    Ordered,
    RowCount,
    Unique,
)
from rivermark.model.rule import Expectation, SuiteRule


@checked
def columns_match(*columns: str | StructType, severity: Severity = "critical") -> Expectation:
    """The table has exactly these columns, by name (types are the lake's own business)."""
    names = tuple(
        name for c in columns for name in ((c,) if isinstance(c, str) else c.fieldNames())
    )
    if not names:
        raise DeclarationError("columns_match needs the names of the columns, or their schema")
    return (
        SuiteRule(name="the columns are as declared", question=Columns(names), severity=severity),
    )


@checked
def row_count_between(
    low: int | None = None,
    high: int | None = None,
    *,
    name: str = "the number of rows is as expected",
    severity: Severity = "critical",
) -> Expectation:
    """The table (or the part of it that is checked) has from `low` to `high` rows."""
    refuse_disorder(low, high)
    return (SuiteRule(name=name, question=RowCount(low, high), severity=severity),)


@checked
def not_null(column: str, *, mostly: float = 1.0, severity: Severity = "critical") -> Expectation:
    """The column has a value in at least the share `mostly` of the rows."""
    return (
        SuiteRule(
            name=f"{column} is given", question=NotNull(column), at_least=mostly, severity=severity
        ),
    )


@checked
def unique(
    columns: str | Sequence[str],
    *,
    allow_null_share: float = 0.0,
    severity: Severity = "critical",
) -> Expectation:
    """The columns together occur once. Rows in which one of them is empty are not compared."""
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    if not names:
        raise DeclarationError("unique: name the columns that together occur once")
    rule = SuiteRule(
        name=f"{' + '.join(names)} occur once", question=Unique(names), severity=severity
    )
    return (rule, *_not_null(names, allow_null_share, severity))


@checked
def between(
    column: str,
    low: Limit | str | None = None,
    high: Limit | str | None = None,
    *,
    high_excluded: bool = False,
    mostly: float = 1.0,
    allow_null_share: float = 0.0,
    severity: Severity = "critical",
) -> Expectation:
    """The given values lie from `low` to `high`, in at least the share `mostly` of them.

    Times may be given as text: ISO, UTC where no offset stands in it. Not-a-number lies outside.
    """
    first, last = as_limit(low), as_limit(high)
    refuse_disorder(first, last)
    rule = SuiteRule(
        name=f"{column} {_range_in_words(first, last, high_excluded=high_excluded)}",
        question=Between(column, first, last, high_excluded),
        at_least=mostly,
        severity=severity,
    )
    return (rule, *_not_null((column,), allow_null_share, severity))


@checked
def in_set(
    column: str,
    values: Sequence[Item],
    *,
    mostly: float = 1.0,
    allow_null_share: float = 0.0,
    severity: Severity = "critical",
) -> Expectation:
    """The given values are among these."""
    question = OneOf(column, tuple(values))
    types = {type(v) for v in question.values}
    if len(types) != 1 or not types <= {str, int, bool}:
        raise DeclarationError(
            f"in_set('{column}'): give values, all of one type: texts, whole numbers or booleans"
        )
    listed = ", ".join(map(str, question.values))
    name = f"{column} is one of {listed}"
    rule = SuiteRule(name=name, question=question, at_least=mostly, severity=severity)
    return (rule, *_not_null((column,), allow_null_share, severity))


@checked
def matches_regex(
    column: str,
    pattern: str,
    *,
    mostly: float = 1.0,
    allow_null_share: float = 0.0,
    severity: Severity = "critical",
) -> Expectation:
    """The given values match the pattern as a whole, not only somewhere inside.

    The pattern is a regular expression of RE2: it looks neither ahead nor behind.
    """
    name = f"{column} looks like {pattern}"
    rule = SuiteRule(
        name=name, question=Matches(column, pattern), at_least=mostly, severity=severity
    )
    return (rule, *_not_null((column,), allow_null_share, severity))


@checked
def pair_ordered(
    first: str,
    second: str,
    *,
    strictly: bool = False,
    mostly: float = 1.0,
    allow_null_share: float = 0.0,
    severity: Severity = "critical",
) -> Expectation:
    """In each row `first` is at most `second`, as the start of a window and its end."""
    rule = SuiteRule(
        name=f"{first} is {'before' if strictly else 'not after'} {second}",
        question=Ordered(first, second, strictly),
        at_least=mostly,
        severity=severity,
    )
    return (rule, *_not_null((first, second), allow_null_share, severity))


@checked
def no_rows_where(
    condition: str, *, name: str, at_most: int = 0, severity: Severity = "critical"
) -> Expectation:
    """At most `at_most` rows fulfil the condition: SQL over the columns of a row, as of rules.

    A row for which the condition is unknown, because a value in it is empty or a divisor 0, counts
    as well; write `coalesce(..., false)` where it should not.
    """
    return (SuiteRule(name=name, question=NoRowsWhere(condition, at_most), severity=severity),)


@checked
def no_rows_from(query: str, *, name: str, severity: Severity = "critical") -> Expectation:
    """A query finds nothing; it reads the table as `{batch}` and may use windows and joins.

    It is SQL of DuckDB; names that are words of SQL stand in double quotes, and braces of a text
    are doubled.
    """
    if not re.search(r"(?<!\{)\{batch\}(?!\})", query):
        raise DeclarationError(f"rule '{name}': the query does not read {{batch}}")
    return (SuiteRule(name=name, question=NoRowsFrom(query), severity=severity),)


def _range_in_words(low: Limit | None, high: Limit | None, *, high_excluded: bool) -> str:
    if high is None and low is not None:
        return f"is at least {in_words(low)}"
    upper = "" if high is None else in_words(high)
    if low is None:
        return f"is {'below' if high_excluded else 'at most'} {upper}"
    return f"lies from {in_words(low)} to {'below ' if high_excluded else ''}{upper}"


def _not_null(columns: Sequence[str], allow_null_share: float, severity: Severity) -> Expectation:
    # Rounded, for 1 - 0.225 is not the 0.775 that 3,875 of 5,000 rows make.
    at_least = round(1 - allow_null_share, 12)
    if not at_least:
        return ()  # All may be empty: a rule about that could not fail.
    return tuple(
        rule for column in columns for rule in not_null(column, mostly=at_least, severity=severity)
    )
