"""The header of a schema registry, and what a value is where it is not of its format."""

from __future__ import annotations

from typing import Final

ID_BYTES: Final = 4
"""Bytes of the number of a schema, behind a zero byte."""


class UnreadableValue(ValueError):
    """A value is not what its format says; the text says why."""


def without_header(value: bytes, id_bytes: int = ID_BYTES) -> tuple[int, bytes]:
    """The number of a value's schema, and the value; raises UnreadableValue without a header."""
    header = 1 + id_bytes
    if len(value) < header or value[0]:
        raise UnreadableValue("it does not begin with the header of a schema registry")
    return int.from_bytes(value[1:header], "big"), value[header:]
