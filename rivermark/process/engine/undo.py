"""Takes back what a handler did before it raised: to state, timers, outputs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from rivermark.process.api.side_outputs import Outputs
from rivermark.process.engine.bucket import Bucket
from rivermark.process.engine.codec import Codec
from rivermark.process.instants import Millis, instant
from rivermark.process.timers import Calendar, Due, Keyed

Change = tuple[Calendar, bool, Any, Millis]
"""A change of a calendar: whether it added a timer, for which key, and at which instant."""


class Journal(Calendar):
    """A calendar that writes its changes down."""

    __slots__ = ("changes",)

    def __init__(self, context: Keyed, due: Due, earliest: Millis, changes: list[Change]) -> None:
        """Take up timers and note what changes from now on in `changes`."""
        super().__init__(context, due, earliest)
        self.changes = changes

    def register(self, at: Millis | datetime) -> None:
        """Register and, if that added a timer, note it."""
        when = instant(at)
        key = self._context.key
        if key not in self.due.get(when, ()):
            self.changes.append((self, True, key, when))
        super().register(when)

    def delete(self, at: Millis | datetime) -> bool:
        """Delete and, if there was a timer, note it."""
        when = instant(at)
        deleted = super().delete(when)
        if deleted:
            self.changes.append((self, False, self._context.key, when))
        return deleted


class Undo:
    """Remembers a bucket and its outputs as they were before an event.

    A record is remembered in its stored form, because handlers may change values in place.
    """

    def __init__(self, bucket: Bucket, codec: Codec, context: Keyed, outputs: Outputs) -> None:
        """Watch the bucket's calendars from now on."""
        self._bucket = bucket
        self._codec = codec
        self._context = context
        self._outputs = outputs
        self._changes: list[Change] = []
        self._records: dict[Any, bytes] = {}
        self._sizes: list[int] = []
        self._broadcasts: list[bytes] = []
        self._empty = codec.encode_record(codec.template)
        event, processing, event_ends, processing_ends = (
            Journal(context, each.due, each.next, self._changes) for each in bucket.calendars
        )
        bucket.event, bucket.processing = event, processing
        bucket.expiry = {"event": event_ends, "processing": processing_ends}

    def begin(self, *, broadcast: bool) -> None:
        """A handler is about to be called: what it does from here on can be taken back."""
        self._changes.clear()
        self._records.clear()
        self._sizes = self._outputs.sizes()
        if broadcast:
            self._broadcasts = [msgspec.msgpack.encode(each) for each in self._bucket.broadcasts]

    def remember(self, key: Any, record: Any) -> None:
        """The record of `key` is about to be given to the handler."""
        if key is not None and key not in self._records:
            self._records[key] = (
                self._empty if record == self._codec.template else self._codec.encode_record(record)
            )

    @property
    def touched(self) -> Iterable[Any]:
        """The keys whose records the handler was given."""
        return self._records

    @property
    def sizes(self) -> list[int]:
        """How much had been written at `begin`."""
        return self._sizes

    def take_back(self, *, broadcast: bool) -> None:
        """Restore everything as it was at `begin`."""
        for calendar, added, key, at in reversed(self._changes):
            self._context.key = key
            if added:
                Calendar.delete(calendar, at)
            else:
                Calendar.register(calendar, at)
        for key, stored in self._records.items():
            self._bucket.records[key] = self._codec.record(stored)
        self._outputs.cut(self._sizes)
        if broadcast:
            for place, stored in enumerate(self._broadcasts):
                before = self._codec.broadcast(place, stored)
                table = self._bucket.broadcasts[place]
                table.version, table.changed_at = before.version, before.changed_at
                table.entries = before.entries
