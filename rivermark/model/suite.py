"""Suites: what is expected of a table, declared as values beside the table.

Declaring costs nothing: Great Expectations is imported when a suite runs, not before.

    from rivermark.model import expectations as expect

    HOURLY_TIPS_SUITE = Suite(
        expectations=(
            expect.columns_match("window_start", "window_end", "driver_id", "tips", "rank"),
            expect.unique(("window_end", "driver_id")),
            expect.pair_ordered("window_start", "window_end", strictly=True),
            expect.between("tips", 0, 10_000),
            expect.between("rank", 1, 3, severity="warning"),
            expect.no_rows_where("rank = 1 AND tips = 0", name="no winner without tips"),
        ),
    )

Three things hold for every suite:

- An empty table does not pass, unless it `may_be_empty` (great_expectations issues 7432 and 2726:
  rules of rows pass where there are no rows).
- Rules of rows skip empty values, so each comes with a second rule about their share, which has a
  limit of its own (issues 5232, 278): `allow_null_share`, by default none.
- Limits of time are instants in UTC, whatever the session's zone, never text (issues 3594, 8161).

Conditions, queries and patterns are those of DuckDB, which evaluates them; `rivermark check` says
what is wrong with one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from rivermark.model.check import HARDEST_FIRST
from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.expectations import row_count_between
from rivermark.model.names import check_name
from rivermark.model.nearest import did_you_mean
from rivermark.model.question import (
    Columns,
    OfGreatExpectations,
    columns_of,
)
from rivermark.model.rule import Expectation, SuiteRule

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

OF_ITS_TABLE: Final = "(that of its table)"


@declared("suite")
@dataclass(frozen=True)
class Suite:
    """The expectations of one table, in the order in which they are shown.

    The name is that of the table, unless it is given.
    """

    name: str = OF_ITS_TABLE
    expectations: tuple[Expectation, ...] = ()
    may_be_empty: bool = False

    def __post_init__(self) -> None:
        if self.name != OF_ITS_TABLE:
            check_name("suite", self.name, like="taxi/hourly_tips")
        if not self.expectations:
            raise DeclarationError(f"{_called(self.name)} expects nothing")
        _without_repeats(self.name, self.rules)

    @property
    def rules(self) -> tuple[SuiteRule, ...]:
        """Every rule once; where two expectations share a rule, the harder severity holds."""
        first = (
            row_count_between(0, name="rows are counted", severity="info")
            if self.may_be_empty
            else row_count_between(1, name="there are rows")
        )
        declared = (rule for expectation in self.expectations for rule in expectation)
        return _without_repeats(self.name, (*first, *declared))

    @property
    def without_spark(self) -> Suite:
        """The suite without what only Great Expectations evaluates, on Spark."""
        kept = tuple(
            tuple(r for r in expectation if not isinstance(r.question, OfGreatExpectations))
            for expectation in self.expectations
        )
        return replace(self, expectations=kept)


def check_columns(suite: Suite | None, table: str, schema: StructType) -> None:
    """Refuse a rule on a column that the table does not have."""
    if suite is None:
        return
    columns = schema.fieldNames()
    for rule in (rule for expectation in suite.expectations for rule in expectation):
        names = (
            rule.question.names if isinstance(rule.question, Columns) else columns_of(rule.question)
        )
        for name in names:
            if name not in columns:
                raise DeclarationError(
                    f"rule '{rule.name}' of the suite of '{table}': the table has no column "
                    f"'{name}'{did_you_mean(name, columns) or ';'} it has {', '.join(columns)}"
                )


def _called(suite: str) -> str:
    """The name of a suite in errors, where it has none before its table is known."""
    return "this suite" if suite == OF_ITS_TABLE else f"suite '{suite}'"


def _without_repeats(suite: str, rules: Iterable[SuiteRule]) -> tuple[SuiteRule, ...]:
    kept: dict[str, SuiteRule] = {}
    for rule in rules:
        other = kept.setdefault(rule.name, rule)
        if (other.question, other.at_least) != (rule.question, rule.at_least):
            raise DeclarationError(
                f"{_called(suite)} has two rules '{rule.name}', one for {other.bound!r} "
                f"and one for {rule.bound!r}: state it once, or name one of them"
            )
        hardest = min(other.severity, rule.severity, key=HARDEST_FIRST.index)
        kept[rule.name] = replace(other, severity=hardest)
    return tuple(kept.values())
