"""A stored bucket read by its own schema alone, without the code that wrote it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from rivermark.process.engine.stored_form import FORMAT, Paged, Pages, PagesEnvelope, pages_of
from rivermark.process.errors import StateUnreadable
from rivermark.process.evolution.revival import named
from rivermark.process.evolution.schema import StateSchema, StateShape
from rivermark.process.instants import Millis


class StoredBucket:
    """The content of a bucket, in plain values: for looking at state from outside.

    Records are dicts by field name. Keys and values of types that the stored form does not know
    (UUID, Decimal, enum members) appear as the text or number that they are stored as.
    """

    def __init__(self, stored: bytes, pages: bytes | None = None) -> None:
        """Read a bucket, and the pages beside which it is stored if it is.

        Raises StateUnreadable when it is damaged or of a later layout, or the pages are others.
        """
        try:
            if pages_of(stored) is None:
                layout, schema, body = msgspec.msgpack.decode(stored)
                if layout != FORMAT:
                    raise StateUnreadable(f"state has layout {layout}, this version reads {FORMAT}")
            else:
                schema, body = _over_pages(stored, pages)
            self.schema = StateSchema.decoded(schema)
            self.watermark: Millis
            self.watermark, _, self._records, calendars, self._held, broadcasts = body
        except (msgspec.DecodeError, ValueError, TypeError) as error:
            raise StateUnreadable(f"stored state cannot be read: {error}") from error
        self._event, self._processing = (_hashable(each[1]) for each in calendars[:2])
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


def _over_pages(stored: bytes, pages: bytes | None) -> tuple[bytes, tuple[Any, ...]]:
    """The schema and the body of a bucket over pages, as of one that is stored whole."""
    _, schema, identity, changes = msgspec.msgpack.decode(stored)
    paged = None if pages is None else msgspec.msgpack.decode(pages, type=PagesEnvelope)
    if paged is None or paged.identity != identity:
        raise StateUnreadable("the state's pages are not those that its changes belong to")
    body = msgspec.msgpack.decode(paged.body, type=Pages)
    watermark, sequence, _, changed, calendars, held, broadcasts = changes
    records = {
        key: record for page in _decoded(body.records) for key, record in page.items()
    } | changed
    timers = [
        (earliest, _due(_decoded(of_calendar.pages), fired, changes_of_calendar))
        for of_calendar, (earliest, fired, changes_of_calendar) in zip(
            body.calendars, calendars, strict=True
        )
    ]
    kept = {key: record for key, record in records.items() if record is not None}
    return schema, (watermark, sequence, kept, timers, held, broadcasts)


def _decoded(pages: Paged) -> list[dict[Any, Any]]:
    return [msgspec.msgpack.decode(pages[number]) for number in range(len(pages.ends))]


def _due(
    pages: list[dict[Millis, Any]], fired: Millis, changes: dict[Millis, dict[Any, bool]]
) -> dict[Millis, list[Any]]:
    """Keys by instant, those that were added since the pages were written behind the others."""
    due = _hashable({at: page[at] for page in pages for at in page if at > fired})
    for at, changed in changes.items():
        due[at] = [key for key in due.get(at, ()) if key not in changed]
        due[at] += [key for key, added in changed.items() if added]
    return {at: keys for at, keys in due.items() if keys}


def _hashable(due: dict[Millis, Any]) -> dict[Millis, list[Any]]:
    """Keys by instant; a key of several fields is a tuple, as where it names a record."""
    return {
        at: [tuple(key) if isinstance(key, list) else key for key in keys]
        for at, keys in due.items()
    }


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
