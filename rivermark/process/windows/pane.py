"""A pane: what is stored for one window of one key."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Generic, TypeVar

import msgspec

from rivermark.process.windows.window import Window

C = TypeVar("C")

Scalar = bool | int | float | str | None


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
        """See only the entries that begin with `prefix`."""
        self._inside = inside
        self._prefix = prefix

    def __getitem__(self, key: str) -> Scalar:
        """The entry of `key`."""
        return self._inside[self._prefix + key]

    def __setitem__(self, key: str, value: Scalar) -> None:
        """Write an entry."""
        self._inside[self._prefix + key] = value

    def __delitem__(self, key: str) -> None:
        """Remove an entry."""
        del self._inside[self._prefix + key]

    def __iter__(self) -> Any:
        """The keys of this part."""
        cut = len(self._prefix)
        return iter([key[cut:] for key in self._inside if key.startswith(self._prefix)])

    def __len__(self) -> int:
        """Number of entries."""
        return sum(1 for _ in self)
