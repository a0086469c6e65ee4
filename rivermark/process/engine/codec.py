"""The stored form of a bucket: one compact value with the schema that wrote it in front.

Keys map to records that stay encoded until they are touched, so opening a bucket costs one pass in
C however much state each key has, and writing it copies what was not touched. A large bucket of
which a batch touches little is kept as pages and changes, which makes both cost what is touched
(docs/decisions/0014-a-batch-costs-what-it-touches.md).
"""

from __future__ import annotations

from types import GenericAlias
from typing import Any, Final

import msgspec
from msgspec import Raw

from rivermark.process.api.broadcast import Versioned
from rivermark.process.api.declaration import Declaration
from rivermark.process.engine.bucket import Bucket, KeyRecord
from rivermark.process.engine.migration import Upgrade
from rivermark.process.engine.page_codec import PageCodec
from rivermark.process.engine.paging import finds_keys
from rivermark.process.engine.stored_form import (
    FORMAT,
    PAGED,
    Body,
    Envelope,
    Timetable,
    pages_of,
)
from rivermark.process.errors import Misuse, StateUnreadable
from rivermark.process.evolution.schema import StateSchema
from rivermark.process.timers import Calendar, Keyed

_FEW: Final = 32
"""One key in so many may be touched by a batch that writes pages: where more are in every batch,
the changes outgrow the pages within a few, and writing all of the bucket is cheaper."""


class Codec:
    """Reads and writes the buckets of one process."""

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.schema = declaration.schema
        self._schema = self.schema.encoded()
        self._encoder = msgspec.msgpack.Encoder()
        self._envelope = msgspec.msgpack.Decoder(Envelope)
        self._body: msgspec.msgpack.Decoder[Body[Any]] = msgspec.msgpack.Decoder(
            GenericAlias(Body, declaration.key.of)
        )
        slots = [each.stored_type() for each in declaration.states]
        self.checks = not all(
            each.of.plain and (each.key is None or each.key.plain) for each in declaration.states
        )
        self.marks = sorted({each.ttl.clock for each in declaration.states if each.ttl is not None})
        slots.extend([int | None] * len(self.marks))
        self.template: KeyRecord = [None] * len(slots)
        self._record: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
            GenericAlias(tuple, tuple(slots)) if slots else tuple[()]
        )
        self._paged = PageCodec(declaration)
        self._finds_keys = finds_keys(self.schema.key)
        self._broadcasts: list[msgspec.msgpack.Decoder[Versioned[Any, Any]]] = [
            msgspec.msgpack.Decoder(GenericAlias(Versioned, (each.key_type, each.of.of)))
            for each in declaration.broadcasts
        ]
        self.events = [msgspec.msgpack.Decoder(each.event.of) for each in declaration.inputs]

    def record(self, stored: Raw | bytes) -> KeyRecord:
        """Open the record of one key."""
        return list(self._record.decode(stored))

    def encode_record(self, record: KeyRecord) -> bytes:
        """The record of one key as it is stored."""
        return self._encoder.encode(record)

    def checked(self, key: Any, record: KeyRecord) -> Raw:
        """The record as it is stored, after a look whether it comes back.

        Raises Misuse for values that storage would not take or not give back.
        """
        try:
            encoded = self._encoder.encode(record)
            self._record.decode(encoded)
        except (TypeError, ValueError, OverflowError) as error:
            raise Misuse(
                f"process '{self.declaration.name}': the state of key {key!r} cannot be stored, "
                f"its values are not of the declared types: {error}"
            ) from error
        return Raw(encoded)

    def broadcast(self, place: int, stored: Raw | bytes) -> Versioned[Any, Any]:
        """Open the broadcast state declared at `place`."""
        return self._broadcasts[place].decode(stored)

    def decode(self, stored: bytes | None, context: Keyed, pages: bytes | None = None) -> Bucket:
        """Open a bucket; `context` knows the current key. Older state is taken over on the way.

        `pages` are those that the bucket was stored with. Raises StateUnreadable when the state is
        damaged, its schema does not fit, or the pages are others.
        """
        if stored is None:
            none = Calendar(context), Calendar(context), Calendar(context), Calendar(context)
            return Bucket({}, none, [Versioned() for _ in self._broadcasts])
        try:
            if pages_of(stored) is None:
                return self._whole(stored, context)
            return self._over_pages(stored, pages, context)
        except (msgspec.DecodeError, ValueError) as error:
            raise StateUnreadable(
                f"process '{self.declaration.name}': stored state cannot be read: {error}"
            ) from error

    def encode(self, bucket: Bucket) -> bytes | None:
        """The bucket as it is stored, or None when nothing is left in it."""
        if bucket.is_empty():
            return None
        body: Body[Any] = Body(
            watermark=bucket.watermark,
            sequence=bucket.sequence,
            records=bucket.records,
            calendars=self._timetables(bucket),
            held=bucket.held,
            broadcasts=[Raw(self._encoder.encode(each)) for each in bucket.broadcasts],
        )
        encoded = self._encoder.encode(body)
        return self._encoder.encode(Envelope(FORMAT, self._schema, Raw(encoded)))

    def encode_for_store(
        self, bucket: Bucket, pages: bytes | None, page_from: int | None
    ) -> tuple[bytes | None, bytes | None]:
        """The bucket as it is stored, and its pages; `pages` themselves where they stay.

        It is paged where it takes `page_from` bytes or more and the batch touched few of its keys.
        """
        bucket.settle(self._encoder.encode)
        if bucket.pages is not None and pages is not None:
            stored = self._paged.changed(bucket, pages)
            if stored is not None:
                return stored, pages
        bucket.read_all()
        whole = self.encode(bucket)
        if whole is None or page_from is None or len(whole) < page_from or not self._finds_keys:
            return whole, None
        few = bucket.records and len(bucket.touched) * _FEW <= len(bucket.records)
        return self._paged.written(bucket) if few else (whole, None)

    def _whole(self, stored: bytes, context: Keyed) -> Bucket:
        envelope = self._envelope.decode(stored)
        if envelope.layout != FORMAT:
            raise StateUnreadable(
                f"process '{self.declaration.name}': state has layout {envelope.layout}, and this "
                f"version of rivermark reads layouts {FORMAT} and {PAGED}"
            )
        body = self._body.decode(envelope.body)
        if envelope.schema != self._schema:
            self._upgrade(body, envelope.schema)
        return self._bucket(body, context)

    def _bucket(self, body: Body[Any], context: Keyed) -> Bucket:
        first, second, third, fourth = (
            Calendar(context, each.due, each.earliest) for each in body.calendars
        )
        broadcasts = [self.broadcast(*each) for each in enumerate(body.broadcasts)]
        bucket = Bucket(body.records, (first, second, third, fourth), broadcasts)
        bucket.watermark = body.watermark
        bucket.sequence = body.sequence
        bucket.held = body.held
        return bucket

    def _over_pages(self, stored: bytes, pages: bytes | None, context: Keyed) -> Bucket:
        """A bucket over its pages; all of it is read where its schema is an earlier one."""
        bucket, schema, broadcasts = self._paged.open(stored, pages, context)
        if schema == self._schema:
            bucket.broadcasts = [self.broadcast(*each) for each in enumerate(broadcasts)]
            return bucket
        bucket.read_all()
        calendars, held = self._timetables(bucket), bucket.held
        body = Body(bucket.watermark, bucket.sequence, bucket.records, calendars, held, broadcasts)
        self._upgrade(body, schema)
        return self._bucket(body, context)

    def _timetables(
        self, bucket: Bucket
    ) -> tuple[Timetable[Any], Timetable[Any], Timetable[Any], Timetable[Any]]:
        first, second, third, fourth = (
            Timetable(each.earliest, each.due) for each in bucket.calendars
        )
        return first, second, third, fourth

    def _upgrade(self, body: Body[Any], schema: bytes) -> None:
        """Bring a body of an earlier schema under the present one, in place."""
        Upgrade(StateSchema.decoded(schema), self.declaration, self.marks).body(body)
