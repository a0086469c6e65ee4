"""Patterns over events of which some come twice: a repeat is no event of the pattern."""

from __future__ import annotations

from datetime import timedelta
from typing import Generic, Protocol, TypeVar

from rivermark.process import TTL, Context, MapState
from rivermark.process.patterns import PatternProcess


class Numbered(Protocol):
    """An event with its key's own count of events: a repeat has the number of the original."""

    @property
    def number(self) -> int:
        """The number."""


E = TypeVar("E", bound=Numbered)
Out = TypeVar("Out")


class EachOnce(PatternProcess[E, Out], Generic[E, Out]):
    """Keeps the numbers of the last minute. A repeat has the time of the original, so that will do.

    Without this a refused login that is sent twice would be two tries.
    """

    numbers: MapState[int, bool] = MapState(ttl=TTL(timedelta(minutes=1)))

    def on_event(self, event: E, ctx: Context[Out]) -> None:
        """Leave out a repeat, and count it."""
        if event.number in self.numbers:
            ctx.count("repeats")
            return
        self.numbers[event.number] = True
        super().on_event(event, ctx)
