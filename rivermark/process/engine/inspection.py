"""Stored state made readable: the states and timers of one key."""

from __future__ import annotations

from typing import Any

import msgspec

from rivermark.process.api.declaration import StateSpec
from rivermark.process.engine.bucket import Bucket
from rivermark.process.engine.codec import Codec
from rivermark.process.errors import StateUnreadable
from rivermark.process.instants import Millis

KeyState = dict[str, Any]
"""The states of a key by name: a value or None, a list, a dict."""


def state_of(bucket: Bucket, codec: Codec, key: Any) -> KeyState:
    """The states of a key; all of them empty for a key that has none.

    Elements with a life are shown without it, and until the sweep that removes them. Raises
    StateUnreadable, with the key, for a record that storage does not give back.
    """
    stored = bucket.records.get(key)
    if stored is None:
        record = codec.template
    elif isinstance(stored, list):
        record = stored
    else:
        try:
            record = codec.record(stored)
        except (msgspec.DecodeError, ValueError) as error:
            raise StateUnreadable(
                f"process '{codec.declaration.name}': the state of key {key!r} cannot be read "
                f"back, its values are not of the declared types: {error}"
            ) from error
    slots = zip(codec.declaration.states, record, strict=False)
    return {spec.name: _plain(spec, each) for spec, each in slots}


def timers_of(bucket: Bucket, key: Any) -> tuple[tuple[Millis, ...], tuple[Millis, ...]]:
    """The timers of a key in event time and in processing time."""
    return bucket.event.of(key), bucket.processing.of(key)


def _plain(spec: StateSpec, stored: Any) -> Any:
    if stored is None:
        return {"value": None, "list": [], "map": {}}[spec.kind]
    if spec.ttl is None:
        return stored
    if spec.kind == "value":
        return stored[0]
    if spec.kind == "list":
        return [each[0] for each in stored]
    return {key: each[0] for key, each in stored.items()}
