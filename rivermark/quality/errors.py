"""The errors of quality checks: only the last one is a fault of the data."""

from __future__ import annotations

from typing import ClassVar, Self

from rivermark.model.errors import RivermarkError


class Unanswered(RivermarkError):
    """A rule without an answer: the `reason`, behind the names of its suite and of the rule."""

    before_reason: ClassVar = ": "

    def __init__(self, reason: str, *, suite: str = "", rule: str = "") -> None:
        named = {"suite": suite, "rule": rule}
        names = ", ".join(f"{what} '{name}'" for what, name in named.items() if name)
        super().__init__(f"{names}{self.before_reason}{reason}" if names else reason)
        self.reason = reason
        self.rule = rule

    def of_suite(self, suite: str) -> Self:
        """The same, with the name of the suite."""
        return type(self)(self.reason, suite=suite, rule=self.rule)


class CheckCrashed(Unanswered):
    """A rule could not be evaluated, so nothing is known about the data."""

    before_reason = " could not be evaluated: "


class SuiteDoesNotFit(Unanswered):
    """A suite needs columns that the table does not have, or for limits of another type."""


class PublicationBlocked(RivermarkError):
    """Rows of a bounded run break critical rules: nothing is published, they are kept apart."""
