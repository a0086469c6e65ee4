"""The stored form of a large bucket: its pages, and the changes since they were written."""

from __future__ import annotations

from types import GenericAlias
from typing import Any

import msgspec
from msgspec import Raw

from rivermark.process.api.declaration import Declaration
from rivermark.process.engine.bucket import Bucket
from rivermark.process.engine.paging import RecordPages, written
from rivermark.process.engine.stored_form import (
    PAGED,
    Changes,
    ChangesEnvelope,
    Pages,
    PagesEnvelope,
    TimerChanges,
    TimerPages,
)
from rivermark.process.errors import StateUnreadable
from rivermark.process.instants import BEGINNING
from rivermark.process.stored_timers import Due, StoredTimers
from rivermark.process.timers import Calendar, Keyed


class PageCodec:
    """Reads and writes the buckets of one process as pages and changes."""

    def __init__(self, declaration: Declaration) -> None:
        self._process = declaration.name
        self._schema = declaration.schema.encoded()
        self._encoder = msgspec.msgpack.Encoder()
        key = declaration.key.of
        self._changes: msgspec.msgpack.Decoder[Changes[Any]] = msgspec.msgpack.Decoder(
            GenericAlias(Changes, key)
        )
        self._changes_envelope = msgspec.msgpack.Decoder(ChangesEnvelope)
        self._pages = msgspec.msgpack.Decoder(Pages)
        self._pages_envelope = msgspec.msgpack.Decoder(PagesEnvelope)
        self._records: msgspec.msgpack.Decoder[dict[Any, Raw]] = msgspec.msgpack.Decoder(
            GenericAlias(dict, (key, Raw))
        )
        keys = GenericAlias(list, (key,)) | GenericAlias(dict, (key, None))
        self._timers: msgspec.msgpack.Decoder[Due] = msgspec.msgpack.Decoder(
            GenericAlias(dict, (int, keys))
        )

    def open(
        self, stored: bytes, pages: bytes | None, context: Keyed
    ) -> tuple[Bucket, bytes, list[Raw]]:
        """The bucket, its schema, and its broadcast states, which are still encoded.

        Raises StateUnreadable when the pages are others than those that it was stored with.
        """
        envelope = self._changes_envelope.decode(stored)
        paged = None if pages is None else self._pages_envelope.decode(pages)
        if paged is None or paged.identity != envelope.pages:
            raise StateUnreadable(
                f"process '{self._process}': the state's pages are not those that its changes "
                "belong to"
            )
        changes, body = self._changes.decode(envelope.body), self._pages.decode(paged.body)
        first, second, third, fourth = (
            Calendar(context, earliest=each.earliest, stored=self._stored(each, timers))
            for each, timers in zip(changes.calendars, body.calendars, strict=True)
        )
        records = RecordPages(body.records, self._records.decode)
        bucket = Bucket(changes.records, (first, second, third, fourth), [], records, changes.keys)
        bucket.watermark = changes.watermark
        bucket.sequence = changes.sequence
        bucket.held = changes.held
        return bucket, envelope.schema, changes.broadcasts

    def written(self, bucket: Bucket) -> tuple[bytes, bytes]:
        """A bucket that was read whole, without changes, and its pages."""
        identity, pages = written(bucket.records, [each.due for each in bucket.calendars])
        bucket.keys = len(bucket.records)
        return self._encoded(bucket, identity, {})[0], pages

    def changed(self, bucket: Bucket, pages: bytes) -> bytes | None:
        """A bucket over its pages; None where it is time to write them again.

        That is when the changes come to a sixteenth to three sixteenths of them: a share by their
        identity, so that not all buckets do it in one batch.
        """
        identity = self._pages_envelope.decode(pages).identity
        stored, size = self._encoded(bucket, identity, bucket.records)
        return stored if bucket.keys and size <= len(pages) * (128 + identity[0]) // 2048 else None

    def _stored(self, changed: TimerChanges[Any], timers: TimerPages) -> StoredTimers:
        return StoredTimers(
            timers.firsts,
            timers.pages,
            timers.size,
            self._timers.decode,
            fired=changed.fired,
            changes=changed.changes,
        )

    def _encoded(
        self, bucket: Bucket, identity: bytes, changed: dict[Any, Any]
    ) -> tuple[bytes, int]:
        """The bucket with these records, and the bytes of its changes to records and timers."""
        encode = self._encoder.encode
        records, timers = Raw(encode(changed)), Raw(encode([*map(_changes, bucket.calendars)]))
        body = (
            bucket.watermark,
            bucket.sequence,
            bucket.keys,
            records,
            timers,
            bucket.held,
            bucket.broadcasts,
        )
        envelope = ChangesEnvelope(PAGED, self._schema, identity, Raw(encode(body)))
        return encode(envelope), len(records) + len(timers)


def _changes(calendar: Calendar) -> TimerChanges[Any]:
    """Changes of a calendar; of instants that have passed, timers set there afterwards."""
    stored = calendar.stored
    if stored is None:
        return TimerChanges(calendar.earliest, BEGINNING, {})
    changes = {
        at: changed
        for at, changed in stored.changes.items()
        if at > stored.fired or any(changed.values())
    }
    return TimerChanges(calendar.earliest, stored.fired, changes)
