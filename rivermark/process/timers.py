"""The timers of one bucket and one kind of time: which keys are due when."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import Any, Final, Literal, Protocol

from rivermark.process.errors import Misuse
from rivermark.process.instants import BEGINNING, END_OF_TIME, NEVER, Millis, instant

TimeDomain = Literal["event", "processing"]
"""Which time a timer, a life or a window goes by: the watermark's, or the wall clock's."""

Keys = list[Any] | dict[Any, None]
"""Keys due at one instant, in the order of registration. A few are a list, many a dict: a window
end that a million keys share must not make each registration a search."""

Due = dict[Millis, Keys]

_LONGEST_LIST: Final = 8


class Keyed(Protocol):
    """Knows the current key."""

    key: Any


class Calendar:
    """Timers by instant, one per key and instant.

    Registering and deleting cost the same whatever the number of timers. What is due is found by a
    heap of instants, built when the first timer of a batch is due: a batch in which nothing is due
    never looks at the timers it does not touch.
    """

    __slots__ = ("_context", "_heap", "_of_key", "due", "next")

    def __init__(self, context: Keyed, due: Due | None = None, earliest: Millis = NEVER) -> None:
        self.due: Due = {} if due is None else due
        self.next = earliest
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
        elif len(keys) < _LONGEST_LIST:
            keys.append(key)
        else:
            self.due[when] = dict.fromkeys([*keys, key])
        if self._of_key is not None:
            self._of_key.setdefault(key, {})[when] = None

    def delete(self, at: Millis | datetime) -> bool:
        """Delete the current key's timer at `at`; returns False when there is none."""
        when = at if type(at) is int else instant(at)
        key = self._context.key
        keys = self.due.get(when)
        if keys is None or key not in keys:
            return False
        if len(keys) == 1:
            del self.due[when]
        elif isinstance(keys, dict):
            del keys[key]
        else:
            keys.remove(key)
        if self._of_key is not None:
            del self._of_key[key][when]
        return True

    def list(self) -> tuple[Millis, ...]:
        """Instants at which the current key will wake, ascending."""
        return self.of(self._context.key)

    def of(self, key: Hashable) -> tuple[Millis, ...]:
        """Instants at which `key` will wake, ascending; the first call looks at all timers once."""
        if self._of_key is None:
            self._of_key = {}
            for at, keys in self.due.items():
                for each in keys:
                    self._of_key.setdefault(each, {})[at] = None
        return tuple(sorted(self._of_key.get(key, ())))

    @property
    def earliest(self) -> Millis:
        """An instant before which nothing is due; NEVER when nothing is set."""
        return self.next if self.due else NEVER

    def take(self, limit: Millis) -> tuple[Millis, Keys] | None:
        """Take the earliest instant at or before `limit` off the calendar, with its keys."""
        if self.next > limit:
            return None
        heap = self._heap
        if heap is None:
            heap = self._heap = [*self.due]
            heapify(heap)
        while heap:
            at = heap[0]
            if at > limit:
                self.next = at
                return None
            heappop(heap)
            keys = self.due.pop(at, None)
            if keys is not None:
                if self._of_key is not None:
                    for key in keys:
                        del self._of_key[key][at]
                return at, keys
        self.next = NEVER
        return None

    def __iter__(self) -> Iterator[tuple[Millis, Any]]:
        """Every timer as (instant, key), by instant."""
        for at in sorted(self.due):
            for key in self.due[at]:
                yield at, key

    def __len__(self) -> int:
        return sum(map(len, self.due.values()))
