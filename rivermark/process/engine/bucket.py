"""A bucket in memory: keys that are processed together, their records, timers, waiting events."""

from __future__ import annotations

from typing import Any

from rivermark.process.api.broadcast import Versioned
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
    """

    __slots__ = (
        "broadcasts",
        "event",
        "expiry",
        "held",
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
    ) -> None:
        self.records = records
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

    def is_empty(self) -> bool:
        """Whether nothing would be lost by forgetting the bucket."""
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
