"""The layouts of a stored bucket, as msgspec structs: its version, schema, records and timers.

A bucket is stored whole (`Body`), or, where it is large and a batch touches little of it, as its
*pages* with the *changes* since they were written: a batch then writes the changes alone.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw

K = TypeVar("K")

FORMAT: Final = 1
"""Version of the layout of a whole bucket; state of a later one than PAGED is refused."""

PAGED: Final = 2
"""Version of the layout of changes over pages."""


class Envelope(msgspec.Struct, array_like=True):
    """The stored record: the layout's version, the schema of the process, and the body."""

    layout: int
    schema: bytes
    body: Raw


class Timetable(msgspec.Struct, Generic[K], array_like=True):
    """A stored calendar: an instant before which nothing is due, and the keys by instant."""

    earliest: int
    due: dict[int, list[K] | dict[K, None]]


class Body(msgspec.Struct, Generic[K], array_like=True):
    """The bucket itself."""

    watermark: int
    sequence: int
    records: dict[K, Raw]
    calendars: tuple[Timetable[K], Timetable[K], Timetable[K], Timetable[K]]
    held: list[tuple[int, int, int, K | None, Raw]]
    broadcasts: list[Raw]


class TimerChanges(msgspec.Struct, Generic[K], array_like=True):
    """A calendar over its pages: as StoredTimers, and an instant before which nothing is due."""

    earliest: int
    fired: int
    changes: dict[int, dict[K, bool]]


class Changes(msgspec.Struct, Generic[K], array_like=True):
    """The record beside the pages of a bucket; `keys` is how many it has in all.

    A record that is nil was removed.
    """

    watermark: int
    sequence: int
    keys: int
    records: dict[K, Raw]
    calendars: tuple[TimerChanges[K], TimerChanges[K], TimerChanges[K], TimerChanges[K]]
    held: list[tuple[int, int, int, K | None, Raw]]
    broadcasts: list[Raw]


class ChangesEnvelope(msgspec.Struct, array_like=True):
    """Changes as they are stored: `pages` is the identity of those that they belong to."""

    layout: int
    schema: bytes
    pages: bytes
    body: Raw


class Paged(msgspec.Struct, array_like=True):
    """Pages one behind the other, and where each ends: none is looked at until it is asked for."""

    ends: list[int]
    body: memoryview

    def __getitem__(self, number: int) -> memoryview:
        """A page, still encoded."""
        return self.body[self.ends[number - 1] if number else 0 : self.ends[number]]

    @classmethod
    def of(cls, pages: list[bytes]) -> Paged:
        """These pages."""
        return cls(list(accumulate(map(len, pages))), memoryview(b"".join(pages)))


class TimerPages(msgspec.Struct, array_like=True):
    """Timers by instant, the first instant of each page, and how many instants there are."""

    firsts: list[int]
    pages: Paged
    size: int


class Pages(msgspec.Struct, array_like=True):
    """Records by a hash of their key, and the four calendars by time."""

    records: Paged
    calendars: tuple[TimerPages, TimerPages, TimerPages, TimerPages]


class PagesEnvelope(msgspec.Struct, array_like=True):
    """Pages as they are stored, with their identity: a hash of what is in them."""

    layout: int
    identity: bytes
    body: memoryview


_CHANGES: Final = msgspec.msgpack.Decoder(ChangesEnvelope)


def pages_of(stored: bytes) -> bytes | None:
    """The identity of the pages that a stored bucket is a change of; None where it is whole.

    Raises msgspec.DecodeError for what is no bucket.
    """
    # An array of four begins with 0x94: the envelope of a whole bucket has three fields.
    return _CHANGES.decode(stored).pages if stored[:2] == bytes([0x94, PAGED]) else None
