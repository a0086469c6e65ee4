"""The claims about streams, asked one after the other, with what the lake answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.check import Claim
from rivermark.monitor.checks.registry import claims_of
from rivermark.settings import Settings

ABOUT_LIFE = "is_alive"
"""A claim about a process, which says nothing of a run that has ended."""


@dataclass(frozen=True)
class Checked:
    """A claim about a stream and whether it holds; `sentence` is the answer in words."""

    stream: str
    claim: str
    holds: bool
    sentence: str


def check(
    settings: Settings, streams: Sequence[AnyStream], extra: Iterable[Claim], now: datetime
) -> list[Checked]:
    """Ask every claim about the streams' rows, and the extra ones.

    A question that cannot be answered does not hold, and says why.
    """
    claims = [c for s in streams for c in claims_of(s) if c.name != ABOUT_LIFE]
    return [ask_one(settings, claim, now) for claim in (*claims, *extra)]


def ask_one(settings: Settings, claim: Claim, now: datetime) -> Checked:
    """Ask one claim."""
    try:
        answer = claim.ask(settings, now)
    except Exception as error:
        why = f"cannot be answered: {type(error).__name__}: {error}"
        return Checked(claim.stream, claim.name, False, why)
    return Checked(claim.stream, claim.name, answer.holds, answer.sentence)
