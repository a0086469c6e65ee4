"""Inputs of a process: which events it reads, by which key, in which time, and who handles them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Generic, TypeVar

from rivermark.process.instants import Millis, instant

E = TypeVar("E")
H = TypeVar("H", bound=Callable[..., None])

KeyOf = str | tuple[str, ...] | Callable[[Any], Any]
"""The key of an event: a field, several fields, or a function whose return type is annotated."""

TimeOf = str | Callable[[Any], Any]
"""The event time of an event: a field or function giving an aware datetime or milliseconds."""


@dataclass(frozen=True)
class Input(Generic[E]):
    """A keyed input: the class of its events, their key and event time.

    Without a `time` its events carry the processing time at which they are handled. A `control`
    input is handled before the others: before all of them in a batch taken in arrival order, and
    before those of the same time in event-time order.
    """

    event: type[E]
    key: KeyOf
    time: TimeOf | None = None
    control: bool = False


@dataclass(frozen=True)
class Broadcast(Generic[E]):
    """An input without a key, such as rules: each event reaches every bucket, before keyed ones."""

    event: type[E]
    time: TimeOf | None = None


def on(name: str) -> Callable[[H], H]:
    """Mark a method as the handler of the input `name`; `on_<name>` needs no mark."""

    def mark(handler: H) -> H:
        handler.__dict__["handles"] = name
        return handler

    return mark


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Events of one input, column by column, in order of arrival unless `offsets` say otherwise.

    `keys` is None for a broadcast input. `times` are milliseconds since the epoch (UTC), or None
    for an input without event time.
    """

    input: str
    rows: list[Any]
    keys: list[Any] | None = None
    times: list[Millis] | None = None
    offsets: list[int] | None = None


def key_getter(key: KeyOf) -> Callable[[Any], Any]:
    """Function from an event to its key."""
    if isinstance(key, str):
        return attrgetter(key)
    return attrgetter(*key) if isinstance(key, tuple) else key


def instants_of(rows: Iterable[Any], time: TimeOf) -> list[Millis]:
    """Event times of `rows`; raises TypeError for a missing or zoneless one."""
    get = attrgetter(time) if isinstance(time, str) else time
    times = list(map(get, rows))
    if set(map(type, times)) <= {int}:
        return times
    return list(map(instant, times))
