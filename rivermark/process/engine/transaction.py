"""One handler call as a transaction: its effects on state, timers and outputs can be rolled back.

Used where an event may become a dead letter. Without dead letters a failed handler fails the batch,
and what could not be stored or written is found when the batch ends.
"""

from __future__ import annotations

from datetime import datetime
from itertools import islice
from typing import Any

import msgspec

from rivermark.process.api.side_outputs import Outputs
from rivermark.process.engine.binding import Binding
from rivermark.process.engine.bucket import Bucket
from rivermark.process.engine.codec import Codec
from rivermark.process.instants import Millis, instant
from rivermark.process.timers import Calendar, Keyed

Change = tuple[Calendar, bool, Any, Millis]
"""A change of a calendar: whether it added a timer, for which key, and at which instant."""


class Journal(Calendar):
    """A calendar that records its changes."""

    __slots__ = ("changes",)

    def __init__(self, context: Keyed, calendar: Calendar, changes: list[Change]) -> None:
        super().__init__(context, calendar.due, calendar.next, calendar.stored)
        self.changes = changes

    def register(self, at: Millis | datetime) -> None:
        """Register and, if that added a timer, record it."""
        when = instant(at)
        key = self._context.key
        if key not in self.at(when):
            self.changes.append((self, True, key, when))
        super().register(when)

    def delete(self, at: Millis | datetime) -> bool:
        """Delete and, if there was a timer, record it."""
        when = instant(at)
        deleted = super().delete(when)
        if deleted:
            self.changes.append((self, False, self._context.key, when))
        return deleted


class Transaction:
    """The bucket and outputs as they were before a handler call.

    A record is remembered in its stored form, because handlers may change values in place.
    """

    def __init__(self, binding: Binding, codec: Codec, bucket: Bucket, outputs: Outputs) -> None:
        declared = binding.declaration
        self._binding = binding
        self._bucket = bucket
        self._codec = codec
        self._outputs = outputs
        self._changes: list[Change] = []
        self._records: dict[Any, bytes] = {}
        self._sizes: list[int] = []
        self._broadcasts: list[bytes] | None = None
        self._empty = codec.encode_record(codec.template)
        sides = [(outputs.sides[tag], spec.row) for tag, spec in declared.sides.items()]
        self._written = [(outputs.main, declared.out), *sides]
        event, processing, event_ends, processing_ends = (
            Journal(binding.context, each, self._changes) for each in bucket.calendars
        )
        bucket.event, bucket.processing = event, processing
        bucket.expiry = {"event": event_ends, "processing": processing_ends}

    def begin(self, *, broadcast: bool) -> None:
        """Start over: what the next handler does can be rolled back."""
        self._changes.clear()
        self._records.clear()
        self._sizes = self._outputs.sizes()
        self._broadcasts = (
            [msgspec.msgpack.encode(each) for each in self._bucket.broadcasts]
            if broadcast
            else None
        )

    def remember(self, key: Any, record: Any) -> None:
        """Remember the record of `key`, which the handler is about to get."""
        if key is not None and key not in self._records:
            self._records[key] = (
                self._empty if record == self._codec.template else self._codec.encode_record(record)
            )

    def verify(self) -> None:
        """Raise Misuse for state or rows that are not of the declared types."""
        for key in self._records:
            record = self._bucket.records.get(key)
            if record.__class__ is list:
                self._binding.verify(key, record)
        for (rows, row), size in zip(self._written, self._sizes, strict=True):
            if row is not None:
                for each in islice(rows, size, None):
                    row.verify_deeply(each)

    def roll_back(self) -> None:
        """Restore everything as it was at `begin`."""
        for calendar, added, key, at in reversed(self._changes):
            self._binding.context.key = key
            if added:
                Calendar.delete(calendar, at)
            else:
                Calendar.register(calendar, at)
        for key, stored in self._records.items():
            self._bucket.records[key] = self._codec.record(stored)
        self._outputs.cut(self._sizes)
        for place, stored in enumerate(self._broadcasts or ()):
            before = self._codec.broadcast(place, stored)
            table = self._bucket.broadcasts[place]
            table.version, table.changed_at = before.version, before.changed_at
            table.entries = before.entries
