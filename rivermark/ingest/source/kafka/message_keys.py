"""Keys and headers of messages as members of an object."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Final
from uuid import UUID

import msgspec

from rivermark.ingest.source.kafka.decoding import json_value_of
from rivermark.ingest.source.kafka.formats import KeyFormat
from rivermark.ingest.source.kafka.registry_header import UnreadableValue

TEXT: Final = json.JSONEncoder(ensure_ascii=False).encode
"""Writes a text, or None, as JSON."""
BYTES: Final = {"int": 4, "long": 8, "uuid": 16}


def members_of_key(key: bytes, kind: KeyFormat) -> str:
    """A key by its format: `_key`, of a record `_key.<name>`, or `_key_bytes` in base64.

    Raises:
        UnreadableValue: it is none of its format.
        RivermarkError: its schema is not in the registry.
    """
    match kind:
        case "text" if b"\0" not in key:
            return member_of("_key", key)
        case "text" | "bytes":
            # A number in binary may be UTF-8 by chance; nearly all such have a zero byte.
            return f'"_key_bytes":"{b64encode(key).decode()}"'
        case "int" | "long" | "uuid":
            if len(key) != BYTES[kind]:
                raise UnreadableValue(f"{len(key)} bytes are no {kind}")
            if kind == "uuid":
                return f'"_key":"{UUID(bytes=key)}"'
            return f'"_key":{int.from_bytes(key, "big", signed=True)}'
        case _:
            text = json_value_of(key, kind)
    if not text.startswith("{"):
        return f'"_key":{text}'
    members = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    named = (f"{TEXT(f'_key.{name}')}:{bytes(value).decode()}" for name, value in members.items())
    return ",".join(named) or '"_key":{}'


def member_of(name: str, value: bytes | None) -> str:
    """A member with a text, or `<name>_bytes` with base64 where the bytes are none."""
    try:
        text = None if value is None else value.decode()
    except UnicodeDecodeError:
        name, text = f"{name}_bytes", b64encode(value or b"").decode()
    return f"{TEXT(name)}:{TEXT(text)}"
