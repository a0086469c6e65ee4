"""A rule: a check of a table's rows that is declared as a value: a question and its limit."""

from __future__ import annotations

from dataclasses import dataclass

from rivermark.model.bounds import check_share
from rivermark.model.check import Check
from rivermark.model.question import (
    Columns,
    NoRowsFrom,
    NoRowsWhere,
    NotNull,
    OfGreatExpectations,
    Question,
    RowCount,
    UsualRows,
)


@dataclass(frozen=True, kw_only=True)
class SuiteRule(Check):
    """A question with its limit: at least the share `at_least` of the evaluated rows complies."""

    question: Question
    at_least: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a share outside 0 to 1."""
        check_share(f"rule '{self.name}'", at_least=self.at_least)

    @property
    def bound(self) -> str:
        """The limit in words, as it stands beside what was observed."""
        match self.question:
            case Columns(names):
                return ", ".join(names)
            case RowCount(int(low), None):
                return f"at least {in_rows(low)}"
            case RowCount(None, int(high)):
                return f"at most {in_rows(high)}"
            case RowCount(int(low), int(high)):
                return f"{low:,} to {in_rows(high)}"
            case NoRowsWhere(_, at_most) if at_most:
                return f"at most {in_rows(at_most)}"
            case UsualRows():
                return "no day far from its usual number"
            case NoRowsWhere() | NoRowsFrom():
                return "no row"
            case OfGreatExpectations():
                return "as Great Expectations has it"
            case NotNull():
                return (
                    f"at most {percent(1 - self.at_least)} empty"
                    if self.at_least < 1
                    else "none empty"
                )
            case _:
                return f"at least {percent(self.at_least)}" if self.at_least < 1 else "all"


def in_rows(count: int) -> str:
    """A number of rows as it is written: '1 row', '5,000 rows'."""
    return "1 row" if count == 1 else f"{count:,} rows"


def percent(share: float) -> str:
    """A share as it is written beside a limit, to three figures: '22.5 %'."""
    return f"{100 * share:.3g} %"


Expectation = tuple[SuiteRule, ...]
"""The rules of one declared expectation: its own and those about empty values."""
