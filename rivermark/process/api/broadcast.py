"""Broadcast state: what every key may read and only broadcast events may write."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec

from rivermark.process.errors import Misuse

if TYPE_CHECKING:
    from rivermark.process.api.context import Context
    from rivermark.process.api.declaration import StateSpec
    from rivermark.process.instants import Millis

K = TypeVar("K")
V = TypeVar("V")


class Versioned(msgspec.Struct, Generic[K, V], array_like=True):
    """The stored form of a broadcast state: its version, and each entry with the version it got."""

    version: int = 0
    changed_at: int | None = None
    entries: dict[K, tuple[V, int]] = {}

    def is_empty(self) -> bool:
        """Returns True if nothing was ever broadcast."""
        return self.version == 0


class BroadcastState(MutableMapping[K, V], Generic[K, V]):
    """A map of rules, the same for all keys, written by broadcast inputs alone.

    Declared as `rules: BroadcastState[str, Rule]`. `version` counts the changes so far and so says
    which rules an output row was made with; it is the same in every bucket, for all of them see the
    same broadcast events in the same order. Handlers of keyed events and timers can only read.
    """

    def __init__(self) -> None:
        self._stored: Versioned[K, V] = Versioned()
        self._context: Context[Any] | None = None
        self._name = "?"
        self._spec: StateSpec | None = None

    def bind(self, context: Context[Any], spec: StateSpec, stored: Versioned[K, V]) -> None:
        """Be the view of `stored` (called by the engine for each bucket)."""
        self._context = context
        self._name = spec.name
        self._spec = spec
        self._stored = stored

    @property
    def version(self) -> int:
        """Number of changes so far; 0 before the first."""
        return self._stored.version

    @property
    def changed_at(self) -> Millis | None:
        """Event time of the latest change, in milliseconds since the epoch (UTC)."""
        return self._stored.changed_at

    def version_of(self, key: K) -> int | None:
        """Version in which the entry of `key` was written."""
        entry = self._stored.entries.get(key)
        return None if entry is None else entry[1]

    def __getitem__(self, key: K) -> V:
        return self._stored.entries[key][0]

    def __setitem__(self, key: K, value: V) -> None:
        """Write an entry, as a new version of the whole; for broadcast handlers.

        Raises Misuse for one that storage would not give back: no bucket could be read again.
        """
        if self._spec is not None:
            self._spec.of.verify(value)
            if self._spec.key is not None:
                self._spec.key.verify(key)
        self._stored.entries[key] = (value, self._next_version())

    def __delitem__(self, key: K) -> None:
        del self._stored.entries[key]
        self._next_version()

    def __iter__(self) -> Iterator[K]:
        return iter(self._stored.entries)

    def __len__(self) -> int:
        return len(self._stored.entries)

    def _next_version(self) -> int:
        context = self._context
        if context is None or not context.broadcasting:
            raise Misuse(
                f"broadcast state '{self._name}' can be read here, and changed only by the handler "
                "of a broadcast input: a change by one key would not reach the other buckets"
            )
        self._stored.version += 1
        self._stored.changed_at = context.timestamp
        return self._stored.version
