"""Questions of a rule about a table: plain values, which say nothing about their evaluation."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from rivermark.model.limit import Limit

Item = str | int | bool
_CONDITION_COLUMN: Final = re.compile(r"""col\(["']([^"'.`]+)["']\)""")
"""A column in a condition on rows, as Great Expectations writes it; fields are left to it."""


@dataclass(frozen=True)
class Columns:
    """Are the columns exactly these, in any order?"""

    names: tuple[str, ...]


@dataclass(frozen=True)
class RowCount:
    """Is the number of rows in this range, both ends included?"""

    low: int | None
    high: int | None


@dataclass(frozen=True)
class NotNull:
    """Is there a value at all? The only question of rows that sees empty values."""

    column: str


@dataclass(frozen=True)
class Unique:
    """Do these columns together identify a row?"""

    columns: tuple[str, ...]


@dataclass(frozen=True)
class Between:
    """Does the value lie between the limits? `low` is included, `high` unless it is excluded."""

    column: str
    low: Limit | None
    high: Limit | None
    high_excluded: bool = False


@dataclass(frozen=True)
class OneOf:
    """Is the value one of these?"""

    column: str
    values: tuple[Item, ...]


@dataclass(frozen=True)
class Matches:
    """Does the whole value match the pattern, a regular expression of RE2?"""

    column: str
    pattern: str


@dataclass(frozen=True)
class Ordered:
    """Is `first` at most `second` (before it, when `strictly`) in each row?"""

    first: str
    second: str
    strictly: bool = False


@dataclass(frozen=True)
class NoRowsWhere:
    """Are there at most `at_most` rows that fulfil the condition, or may fulfil it?"""

    condition: str
    at_most: int = 0


@dataclass(frozen=True)
class NoRowsFrom:
    """Does a query of DuckDB find nothing? The table is `{batch}`."""

    query: str


@dataclass(frozen=True)
class UsualRows:
    """Has each day about as many rows as the same weekday before it?

    `column` is a moment, whose day is that of `zone`, or a date.
    """

    column: str
    zone: str = "UTC"


@dataclass(frozen=True)
class OfGreatExpectations:
    """A question of Great Expectations that has no equal here: it alone evaluates it.

    `type` and `arguments` are those of its JSON, the arguments as JSON text with sorted keys.
    `module` is the one that makes a custom expectation known when it is imported, if there is one.
    """

    type: str
    arguments: str
    module: str | None = None

    @property
    def kwargs(self) -> dict[str, Any]:
        """The arguments of the expectation."""
        kwargs: dict[str, Any] = json.loads(self.arguments)
        return kwargs

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that the arguments name as such, and those of a `row_condition`."""
        kwargs = self.kwargs
        single = [kwargs[key] for key in ("column", "column_A", "column_B") if key in kwargs]
        of_rows = _CONDITION_COLUMN.findall(str(kwargs.get("row_condition")))
        return (*single, *kwargs.get("column_list", ()), *of_rows)


TableQuestion = Columns | RowCount
RowQuestion = NotNull | Unique | Between | OneOf | Matches | Ordered
RowSearch = NoRowsWhere | NoRowsFrom | UsualRows
Question = TableQuestion | RowQuestion | RowSearch | OfGreatExpectations


def columns_of(question: Question) -> tuple[str, ...]:
    """The columns that a question names (those inside a piece of SQL are unknown)."""
    match question:
        case Unique(columns):
            return columns
        case NotNull(column) | Between(column) | OneOf(column) | Matches(column):
            return (column,)
        case Ordered(first, second):
            return (first, second)
        case OfGreatExpectations():
            return question.columns
        case _:
            return ()
