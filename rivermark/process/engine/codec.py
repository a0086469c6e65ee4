"""The stored form of a bucket: one compact value with the schema that wrote it in front.

Keys map to records that stay encoded until they are touched, so opening a bucket costs one pass in
C however much state each key has, and writing it copies what was not touched.
"""

from __future__ import annotations

from types import GenericAlias
from typing import Any

import msgspec
from msgspec import Raw

from rivermark.process.api.broadcast import Versioned
from rivermark.process.api.declaration import Declaration
from rivermark.process.engine.bucket import Bucket, KeyRecord
from rivermark.process.engine.migration import Upgrade
from rivermark.process.engine.stored_form import FORMAT, Body, Envelope, Timetable
from rivermark.process.errors import Misuse, StateUnreadable
from rivermark.process.evolution.schema import StateSchema
from rivermark.process.timers import Calendar, Keyed


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

    def decode(self, stored: bytes | None, context: Keyed) -> Bucket:
        """Open a bucket; `context` knows the current key. Older state is taken over on the way.

        Raises StateUnreadable when the state is damaged or its schema does not fit.
        """
        if stored is None:
            none = Calendar(context), Calendar(context), Calendar(context), Calendar(context)
            return Bucket({}, none, [Versioned() for _ in self._broadcasts])
        try:
            body = self._body_of(stored)
            broadcasts = [self.broadcast(*each) for each in enumerate(body.broadcasts)]
        except (msgspec.DecodeError, ValueError) as error:
            raise StateUnreadable(
                f"process '{self.declaration.name}': stored state cannot be read: {error}"
            ) from error
        first, second, third, fourth = (
            Calendar(context, each.due, each.earliest) for each in body.calendars
        )
        bucket = Bucket(body.records, (first, second, third, fourth), broadcasts)
        bucket.watermark = body.watermark
        bucket.sequence = body.sequence
        bucket.held = body.held
        return bucket

    def encode(self, bucket: Bucket) -> bytes | None:
        """The bucket as it is stored, or None when nothing is left in it."""
        if bucket.is_empty():
            return None
        first, second, third, fourth = (
            Timetable(each.earliest, each.due) for each in bucket.calendars
        )
        body: Body[Any] = Body(
            watermark=bucket.watermark,
            sequence=bucket.sequence,
            records=bucket.records,
            calendars=(first, second, third, fourth),
            held=bucket.held,
            broadcasts=[Raw(self._encoder.encode(each)) for each in bucket.broadcasts],
        )
        encoded = self._encoder.encode(body)
        return self._encoder.encode(Envelope(FORMAT, self._schema, Raw(encoded)))

    def _body_of(self, stored: bytes) -> Body[Any]:
        """The stored body, under the present schema."""
        envelope = self._envelope.decode(stored)
        if envelope.layout != FORMAT:
            raise StateUnreadable(
                f"process '{self.declaration.name}': state has layout {envelope.layout}, and this "
                f"version of rivermark reads layout {FORMAT}"
            )
        if envelope.schema == self._schema:
            return self._body.decode(envelope.body)
        upgrade = Upgrade(StateSchema.decoded(envelope.schema), self.declaration, self.marks)
        body = self._body.decode(envelope.body)
        upgrade.body(body)
        return body
