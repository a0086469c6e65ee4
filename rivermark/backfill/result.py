"""The result of a reprocessing: what it read, how rows differ, which versions it made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

from rivermark.backfill.difference import Difference
from rivermark.backfill.registry import Kind, Record

PER_TABLE: Final = {"first", "last", "tables"}
"""Fields of a reprocessing that its rows of the register name otherwise."""


@dataclass
class TableOutcome:
    """One table: how its days differ, and what became of them.

    `version_before` is what was compared with, `version_after` the commit that replaced it (None
    where none did). `side` is the path of the computed rows, if they were kept.
    `sinks` are the targets that the output declares, each with what replacing days does to it.
    """

    table: str
    version_before: int
    difference: Difference
    version_after: int | None = None
    conflicts: int = 0
    side: str | None = None
    sinks: Mapping[str, str] = field(default_factory=dict)

    def count_conflict(self) -> None:
        """Count a commit that is tried again, because another writer was faster."""
        self.conflicts += 1

    @property
    def commits_meanwhile(self) -> int:
        """Number of commits that others made between the comparison and the replacement."""
        if self.version_after is None:
            return 0
        return max(0, self.version_after - self.version_before - 1)


@dataclass
class Reprocessing:
    """Days of a stream that were recomputed or restored; times are UTC."""

    id: str
    kind: Kind
    stream: str
    first: date
    last: date
    at: datetime
    run_id: str
    by: str
    inputs: Mapping[str, int] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    code: str = ""
    because: str | None = None
    seconds: float = 0.0
    tables: dict[str, TableOutcome] = field(default_factory=dict)

    @property
    def same(self) -> bool:
        """True if nothing differs in any table."""
        return all(outcome.difference.same for outcome in self.tables.values())

    def days_that_differ(self) -> list[date]:
        """Days of which a row of any table differs."""
        return sorted({d for o in self.tables.values() for d in o.difference.days_that_differ()})

    def records(self) -> list[Record]:
        """Its rows of the register, one for each table."""
        return [
            Record(
                **(self._described() | outcome.difference.counts()),
                first_day=self.first,
                last_day=self.last,
                table=outcome.table,
                version_before=outcome.version_before,
                version_after=outcome.version_after,
                conflicts=outcome.conflicts,
                commits_meanwhile=outcome.commits_meanwhile,
            )
            for outcome in self.tables.values()
        ]

    def as_json(self) -> dict[str, Any]:
        """Everything as JSON takes it; money as text, moments in ISO form."""
        tables = {name: _table_json(outcome) for name, outcome in self.tables.items()}
        days = {"from": self.first, "to": self.last}
        return {**plain(self._described() | days), "tables": tables}

    def _described(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in PER_TABLE}


def _table_json(outcome: TableOutcome) -> dict[str, Any]:
    difference = outcome.difference
    values: dict[str, Any] = plain(
        {
            "version_before": outcome.version_before,
            "version_after": outcome.version_after,
            **difference.counts(),
            "changed_columns": difference.columns,
            "days": {day.isoformat(): counts for day, counts in difference.days.items()},
            "sums": [asdict(each) for each in difference.sums],
            "samples": [asdict(each) for each in difference.samples],
            "conflicts": outcome.conflicts,
            "commits_meanwhile": outcome.commits_meanwhile,
            "side": outcome.side,
            "sinks": outcome.sinks,
        }
    )
    return values


def record_json(record: Record) -> dict[str, Any]:
    """A row of the register as JSON takes it."""
    values: dict[str, Any] = plain(asdict(record))
    return values


def plain(value: Any) -> Any:
    """A value as JSON takes it."""
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, date | datetime):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, bytes):
        return value.hex()
    return value
