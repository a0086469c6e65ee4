"""A check of a table and its result: the same for rules of a suite and for checks of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Severity = Literal["critical", "warning", "info"]
"""How bad a failure is: critical fails a check, warning warns, info is only shown."""

HARDEST_FIRST: Final[tuple[Severity, ...]] = ("critical", "warning", "info")

Example = Mapping[str, str | int | float | None]
"""A row that shows a failure, by column."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """A statement about a table: a name that reads as a sentence, and how bad a failure is."""

    name: str
    severity: Severity


@dataclass(frozen=True, kw_only=True)
class CheckResult:
    """Result of one check.

    `observed` is what was measured and `bound` its limit, both in words; `numbers` are measurements
    worth a plot. `evaluated_count` is the number of rows (or given values) that a rule of rows
    compared, None for checks of the table as a whole; `unexpected_count` of them do not comply.
    `examples` are a few of the failures, none where a personal column is involved. `error` is why a
    rule of a suite could not be evaluated: nothing is known about the data then, so it has failed.
    """

    name: str
    severity: Severity
    passed: bool
    observed: str
    bound: str = ""
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    evaluated_count: int | None = None
    unexpected_count: int | None = None
    examples: tuple[Example, ...] = ()
    error: str | None = None

    @property
    def example_texts(self) -> tuple[str, ...]:
        """The examples as text: 'column=value, ...', or the value alone of a single column."""
        return tuple(
            ", ".join(f"{name}={value}" for name, value in example.items())
            if len(example) > 1
            else "".join(map(str, example.values()))
            for example in self.examples
        )
