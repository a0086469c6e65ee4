"""A match: the events that made it, by the names of the pattern's steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

from rivermark.process.instants import Millis

E = TypeVar("E")


class Match(Mapping[str, list[E]], Generic[E]):
    """Events by step; a step without events (optional, or not reached yet) has an empty list.

    `start` and `end` are the times of the first and last event (milliseconds since the epoch, UTC).
    """

    __slots__ = ("_events", "_names", "end", "start")

    def __init__(
        self, names: tuple[str, ...], events: list[list[E]], start: Millis, end: Millis
    ) -> None:
        self._names = names
        self._events = events
        self.start = start
        self.end = end

    def __getitem__(self, name: str) -> list[E]:
        place = self._names.index(name) if name in self._names else -1
        if place < 0:
            raise KeyError(f"the pattern has no step '{name}'; its steps: {', '.join(self._names)}")
        return self._events[place] if place < len(self._events) else []

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def one(self, name: str) -> E:
        """The last event of a step; LookupError when it has none."""
        events = self[name]
        if not events:
            raise LookupError(f"step '{name}' has no event in this match")
        return events[-1]

    def events(self) -> list[E]:
        """All events, step by step."""
        return [each for events in self._events for each in events]
