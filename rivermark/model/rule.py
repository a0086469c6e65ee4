"""A rule: one question about a table, its limit, and how bad it is when the limit is missed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from rivermark.model.errors import DeclarationError
from rivermark.model.question import (
    Columns,
    Given,
    NoRowsFrom,
    NoRowsWhere,
    Question,
    RowCount,
    UsualRows,
)

Severity = Literal["critical", "warning", "info"]
"""How bad a failure is: critical fails a check, warning warns, info is only shown."""

HARDEST_FIRST: Final[tuple[Severity, ...]] = ("critical", "warning", "info")


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One question with its limit: at least this share of what is looked at must comply."""

    name: str
    asks: Question
    severity: Severity
    at_least: float = 1.0

    def __post_init__(self) -> None:
        """Refuse a share that is none, and a severity that nothing maps."""
        if not 0.0 <= self.at_least <= 1.0:
            raise DeclarationError(f"rule '{self.name}': {self.at_least} is no share of the rows")
        if self.severity not in HARDEST_FIRST:
            raise DeclarationError(
                f"rule '{self.name}': severity {self.severity!r} is none of {HARDEST_FIRST}"
            )

    @property
    def bound(self) -> str:
        """The limit in words, as it stands beside what was observed."""
        match self.asks:
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
            case Given():
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


Expectation = tuple[Rule, ...]
"""What one declared expectation comes to: its own rule and those about empty values."""
