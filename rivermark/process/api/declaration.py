"""The declarations of a process's class, read once when the class is defined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import GenericAlias
from typing import Any, Literal, Optional

from rivermark.process.api.inputs import Arrivals, KeyOf, TimeOf, instants_of, key_getter
from rivermark.process.api.side_outputs import SideSpec
from rivermark.process.api.state import TTL
from rivermark.process.evolution.schema import HeldShape, StateKind, StateSchema, StateShape
from rivermark.process.evolution.storable import Storable
from rivermark.process.instants import Millis

EventOrder = Literal["arrival", "event_time"]

Migration = Callable[[Any, int], Any]
"""Turns a stored value (in plain dicts and lists) and the version that wrote it into a new one."""


@dataclass(frozen=True)
class StateSpec:
    """A declared state: what it holds, and for a map its keys."""

    name: str
    kind: StateKind
    of: Storable
    key: Storable | None
    ttl: TTL | None

    @property
    def shape(self) -> StateShape:
        """Its part of the schema."""
        return StateShape(
            name=self.name,
            kind=self.kind,
            of=self.of.shape,
            key=None if self.key is None else self.key.shape,
            life=None if self.ttl is None else self.ttl.clock,
        )

    @property
    def key_type(self) -> Any:
        """Type of a map's keys."""
        return Any if self.key is None else self.key.of

    def stored_type(self) -> Any:
        """Type of its slot in a key's record."""
        inside: Any = self.of.of if self.ttl is None else GenericAlias(tuple, (self.of.of, int))
        if self.kind == "list":
            return GenericAlias(list, inside) | None
        if self.key is not None:
            return GenericAlias(dict, (self.key.of, inside)) | None
        return Optional[inside]  # noqa: UP045  # a type at run time; '|' fails on some forms


@dataclass(frozen=True)
class InputSpec:
    """A declared input: its events, key, time, and the name of the method that handles them."""

    name: str
    event: Storable
    key: KeyOf | None
    time: TimeOf | None
    handler: str
    control: bool

    @property
    def broadcast(self) -> bool:
        """True if its events reach every bucket and have no key."""
        return self.key is None

    def arrivals(
        self,
        rows: list[Any],
        keys: list[Any] | None = None,
        times: list[Millis] | None = None,
    ) -> Arrivals:
        """Columns of `rows`; keys and times that are not known yet are taken from the events."""
        if keys is None and self.key is not None:
            keys = list(map(key_getter(self.key), rows))
        if times is None and self.time is not None:
            times = instants_of(rows, self.time)
        return Arrivals(self.name, rows, keys, times)


@dataclass(frozen=True)
class Declaration:
    """Everything that the class of a process declares.

    `decided`: whether it says if events wait for the watermark, which timers in event time need.
    """

    name: str
    version: int
    key: Storable
    states: tuple[StateSpec, ...]
    broadcasts: tuple[StateSpec, ...]
    inputs: tuple[InputSpec, ...]
    sides: dict[str, SideSpec]
    out: Storable | None
    order: EventOrder
    hold: bool
    decided: bool
    dead_letter: bool
    has_on_timer: bool
    migrations: dict[str, Migration]
    forgets: tuple[str, ...]

    @property
    def schema(self) -> StateSchema:
        """The dependencies of its stored state."""
        held = (HeldShape(each.name, each.event.shape) for each in self.inputs)
        return StateSchema(
            process=self.name,
            version=self.version,
            key=self.key.shape,
            states=tuple(each.shape for each in (*self.states, *self.broadcasts)),
            held=tuple(held) if self.hold else (),
        )

    def input(self, name: str | None) -> InputSpec:
        """The input called `name`; without a name the only one there is."""
        if name is None and len(self.inputs) == 1:
            return self.inputs[0]
        for each in self.inputs:
            if each.name == name:
                return each
        known = ", ".join(each.name for each in self.inputs)
        raise LookupError(f"process '{self.name}' has no input {name!r}; its inputs are: {known}")
