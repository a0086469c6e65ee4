"""A bucket in memory: keys that are processed together, their records, timers, waiting events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Raw

from rivermark.process.api.broadcast import Versioned
from rivermark.process.engine.paging import GONE, RecordPages
from rivermark.process.instants import BEGINNING, NEVER, Millis
from rivermark.process.timers import Calendar, TimeDomain

KeyRecord = list[Any]
"""The states of one key by slot, None where there is none."""

Held = tuple[Millis, int, int, Any, Any]
"""A waiting event: its time, the rank of its input, its number of arrival, its key, and itself
(still encoded if it came from storage). They sort as they are to be handled."""


class Bucket:
    """The state of many keys, between reading and writing it.

    `records` holds the record of each key, encoded until the key is touched. `touched` are the keys
    whose records were opened, in order.

    Of a bucket over `pages` it holds those that were touched or have changed since the pages were
    written, GONE for one that was removed, and `keys` is how many keys have state in all.
    """

    __slots__ = (
        "broadcasts",
        "event",
        "expiry",
        "held",
        "keys",
        "opened",
        "pages",
        "processing",
        "records",
        "sequence",
        "touched",
        "watermark",
    )

    def __init__(
        self,
        records: dict[Any, Any],
        calendars: tuple[Calendar, Calendar, Calendar, Calendar],
        broadcasts: list[Versioned[Any, Any]],
        pages: RecordPages | None = None,
        keys: int = 0,
    ) -> None:
        self.records = records
        self.pages = pages
        self.keys = keys
        self.opened: dict[Any, tuple[Raw | None, bool]] = {}
        self.event, self.processing, *expiry = calendars
        self.expiry: dict[TimeDomain, Calendar] = {"event": expiry[0], "processing": expiry[1]}
        self.broadcasts = broadcasts
        self.held: list[Held] = []
        self.sequence = 0
        self.watermark: Millis = BEGINNING
        self.touched: list[Any] = []

    @property
    def calendars(self) -> tuple[Calendar, Calendar, Calendar, Calendar]:
        """Timers in event and processing time, then the ends of lives in both."""
        return self.event, self.processing, self.expiry["event"], self.expiry["processing"]

    def stored(self, key: Any, changed: Raw | None) -> Raw | None:
        """The stored record of a key that is opened now, `changed` since the pages were written."""
        if self.pages is None:
            return changed
        record = self.pages.get(key) if changed is None else None if changed == GONE else changed
        self.opened[key] = record, changed is not None
        return record

    def settle(self, encode: Callable[[Any], bytes]) -> None:
        """Keep of the opened records, encoded, those that changed since the pages were written."""
        if self.pages is None:
            return
        for key, (before, changed_before) in self.opened.items():
            record = self.records.get(key)
            if record is None:
                self.keys -= before is not None
                if self.pages.get(key) is not None:
                    self.records[key] = GONE
                continue
            after = record if record.__class__ is Raw else Raw(encode(record))
            self.keys += before is None
            if after == before and not changed_before:
                del self.records[key]
            else:
                self.records[key] = after

    def read_all(self) -> None:
        """Take all that the pages hold into memory; the bucket is one without pages then."""
        if self.pages is None:
            return
        removed = [key for key, record in self.records.items() if record == GONE]
        for key, record in self.pages.items():
            self.records.setdefault(key, record)
        for key in removed:
            del self.records[key]
        for calendar in self.calendars:
            calendar.read_all()
            calendar.stored = None
        self.pages = None

    def is_empty(self) -> bool:
        """Returns True if nothing would be lost by forgetting the bucket."""
        return not (
            self.records
            or self.event.due
            or self.processing.due
            or self.held
            or any(not each.is_empty() for each in self.broadcasts)
        )

    def next_event_time(self) -> Millis | None:
        """Watermark at which the bucket has something to do, or None; it may be a little early."""
        first_held = self.held[0][0] if self.held else NEVER
        return _known(min(self.event.earliest, self.expiry["event"].earliest, first_held))

    def next_processing_time(self) -> Millis | None:
        """Processing time at which the bucket has something to do, or None; may be early."""
        return _known(min(self.processing.earliest, self.expiry["processing"].earliest))


def _known(at: Millis) -> Millis | None:
    return None if at == NEVER else at
