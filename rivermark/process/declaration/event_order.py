"""In which order a process handles events, where its class leaves it open."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import Any

from rivermark.model.errors import DeclarationError
from rivermark.process.api.declaration import EventOrder, InputSpec
from rivermark.process.code_names import names_in

OURS = "rivermark.process."
"""Modules whose own timers do not count: windows and patterns say what they need."""


def event_order(cls: Any, base: Any, inputs: tuple[InputSpec, ...]) -> tuple[EventOrder, bool]:
    """The order of events of `cls`, and whether it holds them until the watermark.

    As the class says. Where it says neither and sets timers in event time, it holds events: it
    would else be chance, decided by how the input is cut into batches, whether a timer or a later
    event comes first, and a live run, a replay and a recompute would give different rows.

    Raises:
        DeclarationError: Events of an input without a time cannot be held: the class has to say
            that it handles them as they come.
    """
    order: EventOrder = cls.order
    if _says(cls, base, "hold") or (_says(cls, base, "order") and order == "arrival"):
        return order, cls.hold
    if not sets_event_timers(cls, base):
        return order, cls.hold
    timeless = [each.name for each in inputs if each.time is None]
    if timeless:
        raise DeclarationError(
            f"process '{cls.__name__}' sets timers in event time, and its input '{timeless[0]}' "
            "has no time by which its events could be held until the watermark: give it one, or "
            "say with hold = False that results may depend on how the input is cut into batches"
        )
    return "event_time", True


def sets_event_timers(cls: Any, base: Any) -> bool:
    """Whether methods of the class, or functions of its module that they call, set such timers."""
    used: set[str] = set()
    for owner in _own(cls, base):
        for value in owner.__dict__.values():
            function = getattr(value, "__func__", value)
            if isinstance(function, FunctionType):
                used |= _names(function, set())
    return {"timers", "event"} <= used


def _says(cls: Any, base: Any, attribute: str) -> bool:
    return any(attribute in owner.__dict__ for owner in cls.__mro__ if owner is not base)


def _own(cls: Any, base: Any) -> Iterator[type]:
    for owner in cls.__mro__:
        if issubclass(owner, base) and owner is not base and not owner.__module__.startswith(OURS):
            yield owner


def _names(function: FunctionType, seen: set[FunctionType]) -> set[str]:
    """The attributes and globals that the function names, those of functions beside it included."""
    seen.add(function)
    names = names_in(function.__code__)
    for name in [*names]:
        called = function.__globals__.get(name)
        if (
            isinstance(called, FunctionType)
            and called.__module__ == function.__module__
            and called not in seen
        ):
            names |= _names(called, seen)
    return names
