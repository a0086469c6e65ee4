"""The schema of a process's state: what was declared, in a form that is stored beside the state."""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

from rivermark.process.evolution.shapes import TypeShape

StateKind = Literal["value", "list", "map", "broadcast"]


class StateShape(msgspec.Struct, frozen=True, array_like=True):
    """One declared state: its name and kind, what it holds, and the clock of its life if any.

    `key` is that of a map's entries. A life is part of the shape, for it is stored beside elements.
    """

    name: str
    kind: StateKind
    of: TypeShape
    key: TypeShape | None = None
    life: str | None = None

    def __str__(self) -> str:
        inside = f"{self.key}, {self.of}" if self.key is not None else str(self.of)
        life = f" with a life in {self.life} time" if self.life else ""
        return f"{self.kind} of {inside}{life}"


class HeldShape(msgspec.Struct, frozen=True, array_like=True):
    """Events of one input that wait for the watermark in the state."""

    input: str
    event: TypeShape


class StateSchema(msgspec.Struct, frozen=True, array_like=True):
    """All that stored state of a process depends on. Equal schemas read each other's state."""

    process: str
    version: int
    key: TypeShape
    states: tuple[StateShape, ...]
    held: tuple[HeldShape, ...] = ()

    def encoded(self) -> bytes:
        """The schema as it is stored in front of each bucket."""
        return msgspec.msgpack.encode(self)

    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that differ when anything in the schema does."""
        return hashlib.sha256(self.encoded()).hexdigest()[:16]

    @classmethod
    def decoded(cls, stored: bytes) -> StateSchema:
        """The schema in front of a stored bucket."""
        return msgspec.msgpack.decode(stored, type=cls)
