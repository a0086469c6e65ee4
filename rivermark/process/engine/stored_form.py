"""The layout of a stored bucket, as msgspec structs: its version, schema, records and timers."""

from __future__ import annotations

from typing import Final, Generic, TypeVar

import msgspec
from msgspec import Raw

K = TypeVar("K")

FORMAT: Final = 1
"""Version of this layout; state of a later one is refused."""


class Envelope(msgspec.Struct, array_like=True):
    """What is stored: the layout's version, the schema of the process, and the body."""

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
