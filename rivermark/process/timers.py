"""The timers of one bucket and one kind of time: which keys are due when."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Any, Literal, Protocol

from rivermark.process.errors import Misuse
from rivermark.process.instants import BEGINNING, END_OF_TIME, NEVER, Millis, instant
from rivermark.process.stored_timers import LONGEST_LIST, Due, Keys, StoredTimers

TimeDomain = Literal["event", "processing"]
"""Which time a timer, a life or a window goes by: the watermark's, or the wall clock's."""


class Keyed(Protocol):
    """Knows the current key."""

    key: Any


class Calendar:
    """Timers by instant, one per key and instant.

    Registering and deleting cost the same whatever the number of timers. What is due is found by a
    heap of instants, built when the first timer of a batch is due: a batch in which nothing is due
    never looks at the timers it does not touch. Over `stored` timers `due` holds those instants
    that were touched or due, and every change is noted there too.
    """

    __slots__ = ("_context", "_heap", "_of_key", "due", "next", "stored")

    def __init__(
        self,
        context: Keyed,
        due: Due | None = None,
        earliest: Millis = NEVER,
        stored: StoredTimers | None = None,
    ) -> None:
        self.due: Due = {} if due is None else due
        self.next = earliest
        self.stored = stored
        self._context = context
        self._heap: list[Millis] | None = None
        self._of_key: dict[Hashable, dict[Millis, None]] | None = None

    def register(self, at: Millis | datetime) -> None:
        """Fire a timer for the current key at `at`, once, however often it is registered.

        `at` is an aware datetime or milliseconds since the epoch (UTC); one in the past fires in
        this batch.

        Raises:
            TypeError: `at` is no instant, or has no time zone.
            Misuse: `at` is outside the 64-bit millisecond range.
        """
        when = at if type(at) is int else instant(at)
        key = self._context.key
        keys = self.due.get(when)
        if keys is None and self.stored is not None:
            keys = self._read(when)
        if keys is None:
            if not BEGINNING <= when <= END_OF_TIME:
                raise Misuse(f"timer {when} is outside the 64-bit millisecond range")
            self.due[when] = [key]
            if when < self.next:
                self.next = when
            if self._heap is not None:
                heappush(self._heap, when)
        elif key in keys:
            return
        elif isinstance(keys, dict):
            keys[key] = None
        elif len(keys) < LONGEST_LIST:
            keys.append(key)
        else:
            self.due[when] = dict.fromkeys([*keys, key])
        if self.stored is not None:
            self.stored.note(when, key, added=True)
        if self._of_key is not None:
            self._of_key.setdefault(key, {})[when] = None

    def delete(self, at: Millis | datetime) -> bool:
        """Delete the current key's timer at `at`; returns False when there is none."""
        when = at if type(at) is int else instant(at)
        key = self._context.key
        keys = self.due.get(when)
        if keys is None and self.stored is not None:
            keys = self._read(when)
        if keys is None or key not in keys:
            return False
        if len(keys) == 1:
            del self.due[when]
        elif isinstance(keys, dict):
            del keys[key]
        else:
            keys.remove(key)
        if self.stored is not None:
            self.stored.note(when, key, added=False)
        if self._of_key is not None:
            del self._of_key[key][when]
        return True

    def at(self, when: Millis) -> Keys:
        """Keys due at an instant."""
        keys = self.due.get(when)
        if keys is None and self.stored is not None:
            keys = self._read(when)
        return [] if keys is None else keys

    def list(self) -> tuple[Millis, ...]:
        """Instants at which the current key will wake, ascending."""
        return self.of(self._context.key)

    def of(self, key: Hashable) -> tuple[Millis, ...]:
        """Instants at which `key` will wake, ascending; the first call looks at all timers once."""
        if self._of_key is None:
            self.read_all()
            self._of_key = {}
            for at, keys in self.due.items():
                for each in keys:
                    self._of_key.setdefault(each, {})[at] = None
        return tuple(sorted(self._of_key.get(key, ())))

    @property
    def earliest(self) -> Millis:
        """An instant before which nothing is due; NEVER when nothing is set."""
        return self.next if self.due or self.stored is not None else NEVER

    @property
    def instants(self) -> int:
        """About how many instants have timers, at least as many as there are."""
        stored = self.stored
        return len(self.due) + (0 if stored is None else stored.size + len(stored.changes))

    def read_all(self) -> None:
        """Take all that is stored into `due`."""
        self._read_until(END_OF_TIME)

    def take(self, limit: Millis) -> tuple[Millis, Keys] | None:
        """Take the earliest instant at or before `limit` off the calendar, with its keys."""
        if self.next > limit:
            return None
        heap = self._heap
        if heap is None:
            heap = self._heap = [*self.due]
            heapify(heap)
        if self.stored is not None:
            self._read_until(limit)
        while heap:
            at = heap[0]
            if at > limit:
                break
            heappop(heap)
            keys = self.due.pop(at, None)
            if keys is not None:
                if self.stored is not None:
                    self.stored.take(at)
                if self._of_key is not None:
                    for key in keys:
                        del self._of_key[key][at]
                return at, keys
        self.next = heap[0] if heap else NEVER
        if self.stored is not None:
            self.next = min(self.next, self.stored.after(limit))
        return None

    def _read(self, when: Millis) -> Keys | None:
        """Take what is stored of an instant into `due`."""
        assert self.stored is not None  # noqa: S101  # asked by the callers
        keys = self.stored.keys_at(when)
        if keys is not None:
            self.due[when] = keys
            if self._heap is not None:
                heappush(self._heap, when)
        return keys

    def _read_until(self, limit: Millis) -> None:
        if self.stored is not None:
            for when in self.stored.unread(limit):
                if when not in self.due:
                    self._read(when)

    def __iter__(self) -> Iterator[tuple[Millis, Any]]:
        """Every timer as (instant, key), by instant."""
        self.read_all()
        for at in sorted(self.due):
            for key in self.due[at]:
                yield at, key

    def __len__(self) -> int:
        self.read_all()
        return sum(map(len, self.due.values()))
