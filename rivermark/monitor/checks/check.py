"""A claim about a table, and the answer that the lake gives to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from rivermark.model.table import Table
from rivermark.settings import Settings

Severity = Literal["error", "warn"]
Offender = dict[str, str | int | float | None]


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Whether a claim holds, with its evidence.

    `numbers` are what was measured and the bound; `offenders` are the worst cases, a few of them.
    `severity` is what this broken claim means, where that depends on what was found. A question
    that cannot be answered raises: it says nothing about the data.
    """

    holds: bool
    sentence: str
    numbers: dict[str, int | float] = field(default_factory=dict)
    offenders: tuple[Offender, ...] = ()
    severity: Severity | None = None


@dataclass(frozen=True, kw_only=True)
class Claim:
    """One statement about a table, named in its own words, and how to ask the lake for it.

    `severity` is what a broken claim means: `error` is wrong data or a dead stream, `warn` is
    something to look at. `ask` takes the moment of asking (UTC).
    """

    name: str
    table: Table
    stream: str
    description: str
    severity: Severity
    ask: Callable[[Settings, datetime], Answer]
