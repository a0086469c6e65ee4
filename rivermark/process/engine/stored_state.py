"""A stored bucket read by its own schema alone, without the code that wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rivermark.process.engine.stored_form import FORMAT
from rivermark.process.errors import StateUnreadable
from rivermark.process.evolution.revival import named
from rivermark.process.evolution.schema import StateSchema, StateShape
from rivermark.process.instants import Millis


class StoredBucket:
    """What is in a bucket, in plain values: for looking at state from outside.

    Records are dicts by field name. Keys and values of types that the stored form does not know
    (UUID, Decimal, enum members) appear as the text or number that they are stored as.
    """

    def __init__(self, stored: bytes) -> None:
        """Read a bucket; raises StateUnreadable when it is damaged or of a later layout."""
        try:
            layout, schema, body = msgspec.msgpack.decode(stored)
            if layout != FORMAT:
                raise StateUnreadable(f"state has layout {layout}, this version reads {FORMAT}")
            self.schema = StateSchema.decoded(schema)
            self.watermark: Millis
            self.watermark, _, self._records, calendars, self._held, broadcasts = body
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise StateUnreadable(f"stored state cannot be read: {error}") from error
        self._event, self._processing = calendars[0][1], calendars[1][1]
        self._keyed = [each for each in self.schema.states if each.kind != "broadcast"]
        shared = [each for each in self.schema.states if each.kind == "broadcast"]
        self.broadcasts = {
            each.name: _shared(each, stored)
            for each, stored in zip(shared, broadcasts, strict=True)
        }

    def keys(self) -> list[Any]:
        """Keys that have state or timers."""
        timers = (key for due in (self._event, self._processing) for at in due for key in due[at])
        return list(dict.fromkeys([*self._records, *timers]))

    def state_of(self, key: Any) -> dict[str, Any]:
        """The states of a key by name; what has a life is shown as its 'value' and 'until' when."""
        record = self._records.get(key, [])
        slots = {each.name: stored for each, stored in zip(self._keyed, record, strict=False)}
        return {each.name: _plain(each, slots.get(each.name)) for each in self._keyed}

    def timers_of(self, key: Any) -> dict[str, list[Millis]]:
        """Timers of a key by kind, ascending (milliseconds since the epoch, UTC)."""
        return {
            kind: sorted(at for at, keys in due.items() if key in keys)
            for kind, due in (("event", self._event), ("processing", self._processing))
        }

    def timer_count(self) -> int:
        """Number of timers of all keys, of both kinds."""
        return sum(len(keys) for due in (self._event, self._processing) for keys in due.values())

    def waiting(self) -> Iterator[tuple[str, Any, Millis, Any]]:
        """Events that wait for the watermark: input, key, time, and the event in plain values."""
        for at, rank, _, key, event in self._held:
            held = self.schema.held[rank]
            yield held.input, key, at, named(event, held.event)


def _plain(shape: StateShape, stored: Any) -> Any:
    if stored is None:
        return {"value": None, "list": [], "map": {}}[shape.kind]
    if shape.kind == "list":
        return [_element(shape, each) for each in stored]
    if shape.kind == "map":
        return {key: _element(shape, each) for key, each in stored.items()}
    return _element(shape, stored)


def _element(shape: StateShape, stored: Any) -> Any:
    if shape.life is None:
        return named(stored, shape.of)
    return {"value": named(stored[0], shape.of), "until": stored[1]}


def _shared(shape: StateShape, stored: Any) -> dict[str, Any]:
    version, changed_at, entries = stored
    return {
        "version": version,
        "changed_at": changed_at,
        "entries": {key: named(each, shape.of) for key, (each, _) in entries.items()},
    }
