"""Finds the states that a process's class declares, and refuses what could not be kept."""

from __future__ import annotations

import typing
from typing import Any, Final

from rivermark.model.errors import DeclarationError
from rivermark.process.api.broadcast import BroadcastState
from rivermark.process.api.declaration import StateSpec
from rivermark.process.api.state import TTL, Collection, ListState, MapState, ValueState
from rivermark.process.declaration.type_arguments import annotations_naming, substituted
from rivermark.process.evolution.schema import StateKind
from rivermark.process.evolution.storable import Storable, check_key_type

_KINDS: Final[dict[Any, StateKind]] = {
    ValueState: "value",
    ListState: "list",
    MapState: "map",
    BroadcastState: "broadcast",
}
_WORDS: Final = tuple(kind.__name__ for kind in _KINDS)


def find_states(cls: type, base: type) -> tuple[StateSpec, ...]:
    """The states of `cls` and of its bases below `base`, bases first, in order of declaration."""
    states: dict[str, StateSpec] = {}
    for owner in _owners(cls, base):
        hints = annotations_naming(owner, _WORDS)
        for name, hint in hints.items():
            kind = _KINDS.get(typing.get_origin(hint) or hint)
            if kind is None:
                continue
            spec = _spec(cls, owner, name, kind, hint)
            if name in states and states[name].shape != spec.shape:
                raise DeclarationError(
                    f"process '{cls.__name__}': state '{name}' is declared twice, as "
                    f"{states[name].shape} and as {spec.shape}"
                )
            if hasattr(base, name):
                raise DeclarationError(
                    f"process '{cls.__name__}': a state cannot be called '{name}', every process "
                    "has an attribute of that name"
                )
            states[name] = spec
        _refuse_untyped(cls, owner, hints)
    return tuple(states.values())


def _owners(cls: type, base: type) -> list[type]:
    return [each for each in reversed(cls.__mro__) if issubclass(each, base) and each is not base]


def _spec(cls: type, owner: type, name: str, kind: StateKind, hint: Any) -> StateSpec:
    what = f"process '{cls.__name__}': state '{name}'"
    arguments = typing.get_args(substituted(hint, cls, owner))
    wanted = 2 if kind in ("map", "broadcast") else 1
    if len(arguments) != wanted:
        named = "MapState[str, int]" if wanted == 2 else f"{_class_of(kind).__name__}[int]"
        raise DeclarationError(f"{what} does not say what it holds: write it like {named}")
    declared = owner.__dict__.get(name)
    if isinstance(declared, Collection):  # `owner` is a process itself, with its attributes set up
        declared = None
    if declared is not None and not isinstance(declared, _class_of(kind)):
        raise DeclarationError(
            f"{what} and the class attribute '{name}' ({declared!r}) have one name; "
            f"only a {_class_of(kind).__name__}(...) may stand there"
        )
    key = None
    if wanted == 2:
        key = Storable(arguments[0], f"{what}, its keys")
        check_key_type(key)
    ttl = getattr(declared, "ttl", None)
    if ttl is not None and not isinstance(ttl, TTL):
        raise DeclarationError(f"{what}: its ttl is {ttl!r}; write TTL(timedelta(hours=1))")
    return StateSpec(name=name, kind=kind, of=Storable(arguments[-1], what), key=key, ttl=ttl)


def _class_of(kind: StateKind) -> type:
    cls: type = next(cls for cls, each in _KINDS.items() if each == kind)
    return cls


def _refuse_untyped(cls: type, owner: type, hints: dict[str, Any]) -> None:
    for name, value in owner.__dict__.items():
        if isinstance(value, tuple(_KINDS)) and name not in hints:
            raise DeclarationError(
                f"process '{cls.__name__}': state '{name}' has no type: annotate it, as in "
                f"'{name}: {type(value).__name__}[...] = {type(value).__name__}(...)'"
            )
