"""The header of a schema registry, and what a value is where it is not of its format."""

from __future__ import annotations

from typing import Final

HEADER: Final = 5
"""Bytes of the header: a zero, and the number of the schema."""


class UnreadableValue(ValueError):
    """A value is not what its format says; the text says why."""


def schema_number(value: bytes) -> int:
    """The number of a value's schema; raises UnreadableValue where it has no header."""
    if len(value) < HEADER or value[0]:
        raise UnreadableValue("it does not begin with the header of a schema registry")
    return int.from_bytes(value[1:HEADER], "big")


def without_number(value: bytes) -> bytes:
    """What is behind the header; raises UnreadableValue where there is none."""
    schema_number(value)
    return value[HEADER:]
