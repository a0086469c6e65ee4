"""Timers that stay encoded until their instant is asked for: pages by time, and what changed since.

A calendar of a large bucket lies over them. A page is decoded when one of its instants is due or
touched; what a batch changes is noted beside the pages, which are written again only with all of
the bucket.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

from rivermark.process.instants import BEGINNING, NEVER, Millis

Keys = list[Any] | dict[Any, None]
"""Keys due at one instant, in the order of registration. A few are a list, many a dict: a window
end that a million keys share must not make each registration a search."""

Due = dict[Millis, Keys]
Changes = dict[Millis, dict[Any, bool]]
"""By instant: keys whose timer was added (True) or deleted (False) since the pages were written."""

LONGEST_LIST: Final = 8


class EncodedPages(Protocol):
    """Pages by number."""

    def __getitem__(self, number: int) -> memoryview: ...


class StoredTimers:
    """The timers of one calendar, as stored.

    `firsts` are the first instants of `pages`, `size` is how many instants they hold. What lies at
    or before `fired` in the pages is gone; what lies at or before `read` is in the calendar.
    """

    __slots__ = ("_decode", "_opened", "_pages", "changes", "fired", "firsts", "read", "size")

    def __init__(
        self,
        firsts: Sequence[Millis],
        pages: EncodedPages,
        size: int,
        decode: Callable[[memoryview], Due],
        *,
        fired: Millis,
        changes: Changes,
    ) -> None:
        self.firsts = firsts
        self._pages = pages
        self.size = size
        self._decode = decode
        self._opened: dict[int, Due] = {}
        self.fired = fired
        self.changes = changes
        self.read = BEGINNING - 1

    def keys_at(self, at: Millis) -> Keys | None:
        """The keys due at an instant, a copy; None where there are none."""
        stored = self._stored_at(at)
        changed = self.changes.get(at)
        if changed is None:
            return stored.copy() if stored else None
        keys = [key for key in stored if key not in changed]
        keys += [key for key, added in changed.items() if added]
        if len(keys) > LONGEST_LIST:
            return dict.fromkeys(keys)
        return keys or None

    def note(self, at: Millis, key: Any, *, added: bool) -> None:
        """Note that a key's timer was added, behind the others of its instant, or deleted."""
        changed = self.changes.setdefault(at, {})
        changed.pop(key, None)
        if added or key in self._stored_at(at):
            changed[key] = added
        elif not changed:
            del self.changes[at]

    def take(self, at: Millis) -> None:
        """Note that the timers of an instant, the earliest of all, were taken off the calendar."""
        self.fired = max(self.fired, at)
        self.changes.pop(at, None)

    def unread(self, limit: Millis) -> Iterator[Millis]:
        """Instants up to `limit` that the calendar has not read yet, in no order."""
        if limit <= self.read:
            return
        begin = max(self.read, self.fired)
        if begin < limit:
            for number in range(self._number(begin), self._number(limit) + 1):
                yield from (at for at in self._page(number) if begin < at <= limit)
        yield from [at for at in self.changes if self.read < at <= limit]
        self.read = limit

    def after(self, limit: Millis) -> Millis:
        """An instant after `limit` before which nothing unread is due; NEVER if there is none."""
        first = min((at for at in self.changes if at > limit), default=NEVER)
        number = self._number(max(limit, self.fired))
        later = [at for at in self._page(number) if at > max(limit, self.fired)]
        if later:
            return min(first, *later)
        return min(first, self.firsts[number + 1]) if number + 1 < len(self.firsts) else first

    def _stored_at(self, at: Millis) -> Keys | tuple[()]:
        return () if at <= self.fired else self._page(self._number(at)).get(at, ())

    def _number(self, at: Millis) -> int:
        """The page that an instant lies in; -1 before the first."""
        return bisect_right(self.firsts, at) - 1

    def _page(self, number: int) -> Due:
        if number < 0:
            return {}
        page = self._opened.get(number)
        if page is None:
            page = self._opened[number] = self._decode(self._pages[number])
        return page
