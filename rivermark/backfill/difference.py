"""The difference between the rows of days and those published: counts, sums, a few samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

KINDS: Final = ("added", "removed", "changed", "unchanged")
HIDDEN: Final = "…"
"""Takes the place of the value of a personal column."""

Number = int | float | Decimal


@dataclass(frozen=True)
class DaySums:
    """The sum of a numeric column over a day's rows, before and after; None without any value."""

    day: date
    column: str
    before: Number | None
    after: Number | None


@dataclass(frozen=True)
class Sample:
    """A row that differs: its key, and its values (of a changed row: before and after)."""

    kind: str
    key: Mapping[str, Any]
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The rows of a range of days before and after, paired by the table's key within a day.

    `hours` begin (UTC) where rows that differ have their event time, if the table has one.
    Without a declared key whole rows are paired, so nothing counts as changed. Rows that share a
    key are paired in the order of their values.
    """

    added: int = 0
    removed: int = 0
    changed: int = 0
    unchanged: int = 0
    columns: Mapping[str, int] = field(default_factory=dict)
    days: Mapping[date, Mapping[str, int]] = field(default_factory=dict)
    hours: frozenset[datetime] = frozenset()
    sums: tuple[DaySums, ...] = ()
    samples: tuple[Sample, ...] = ()

    @property
    def same(self) -> bool:
        """True if both hold the same rows."""
        return not (self.added or self.removed or self.changed)

    @property
    def rows_before(self) -> int:
        """Rows of the days in what is published."""
        return self.removed + self.changed + self.unchanged

    @property
    def rows_after(self) -> int:
        """Rows of the days in what was computed."""
        return self.added + self.changed + self.unchanged

    def counts(self) -> dict[str, int]:
        """Rows by kind."""
        return {kind: getattr(self, kind) for kind in KINDS}

    def days_that_differ(self) -> list[date]:
        """Days of which any row was added, removed or changed."""
        differing = ("added", "removed", "changed")
        return sorted(day for day, counts in self.days.items() if any(counts[k] for k in differing))

    def of_day(self, day: date) -> Difference:
        """The numbers of one day; columns, hours and samples are known of all days together."""
        if self.days.keys() <= {day}:
            return self
        counts = self.days.get(day)
        if counts is None:
            return Difference()
        return Difference(
            added=counts["added"],
            removed=counts["removed"],
            changed=counts["changed"],
            unchanged=counts["unchanged"],
            days={day: counts},
            sums=tuple(each for each in self.sums if each.day == day),
        )

    def sentence(self) -> str:
        """The numbers in words."""
        if self.same:
            return f"no difference in {self.unchanged:,} rows"
        counts = ", ".join(f"{n:,} {kind}" for kind, n in self.counts().items())
        by_column = ", ".join(f"{name} in {n:,}" for name, n in self.columns.items())
        return f"{counts} ({by_column})" if by_column else counts
