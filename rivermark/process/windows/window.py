"""A window of a key, and what is stored for it."""

from __future__ import annotations

from collections.abc import MutableMapping
from datetime import datetime
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

from rivermark.process.instants import BEGINNING, END_OF_TIME, Millis, moment

C = TypeVar("C")

Scalar = bool | int | float | str | None


class Window(NamedTuple):
    """From `start` to just before `end`, in milliseconds since the epoch (UTC).

    A window is complete when the watermark reaches its end, as in Spark's own windows.
    """

    start: Millis
    end: Millis

    @property
    def last(self) -> Millis:
        """The last instant inside.

        As the event time of a result it lets windows of the same size follow.
        """
        return self.end - 1

    @property
    def starts_at(self) -> datetime:
        """The start as a datetime (UTC)."""
        return moment(self.start)

    @property
    def ends_at(self) -> datetime:
        """The end, not included, as a datetime (UTC)."""
        return moment(self.end)

    def touches(self, other: Window) -> bool:
        """Returns True if two windows overlap or meet: sessions exactly one gap apart are one."""
        return self.start <= other.end and other.start <= self.end

    def with_(self, other: Window) -> Window:
        """The window that spans both."""
        return Window(min(self.start, other.start), max(self.end, other.end))


GLOBAL: Final = Window(BEGINNING, END_OF_TIME)
"""The one window of a key that never ends."""


class Pane(msgspec.Struct, Generic[C], array_like=True):
    """Contents and trigger state of a window.

    `count` is the number of events added; `fired` how often the window fired at or after its end.
    `replaced` are windows that had fired and were merged into this one.
    """

    contents: C | None = None
    count: int = 0
    fired: int = 0
    trigger: dict[str, Scalar] = {}
    state: dict[str, Scalar] = {}
    event_timers: list[int] = []
    processing_timers: list[int] = []
    replaced: list[Window] = []

    def absorb(self, other: Pane[Any], window: Window) -> None:
        """Take over what the pane of `window` knew besides its contents."""
        self.count += other.count
        if other.fired:
            self.replaced.append(window)
        self.replaced.extend(other.replaced)
        self.fired = max(self.fired, other.fired)
        self.state = {**other.state, **self.state}


class Prefixed(MutableMapping[str, Scalar]):
    """A part of a pane's trigger state, for one of several triggers."""

    def __init__(self, inside: MutableMapping[str, Scalar], prefix: str) -> None:
        self._inside = inside
        self._prefix = prefix

    def __getitem__(self, key: str) -> Scalar:
        return self._inside[self._prefix + key]

    def __setitem__(self, key: str, value: Scalar) -> None:
        self._inside[self._prefix + key] = value

    def __delitem__(self, key: str) -> None:
        del self._inside[self._prefix + key]

    def __iter__(self) -> Any:
        cut = len(self._prefix)
        return iter([key[cut:] for key in self._inside if key.startswith(self._prefix)])

    def __len__(self) -> int:
        return sum(1 for _ in self)
