"""Reads the declaration of a process from its class and refuses what cannot work."""

from __future__ import annotations

import typing
from typing import Any, Final, TypeVar

from rivermark.model.errors import DeclarationError
from rivermark.process.api.broadcast import BroadcastState
from rivermark.process.api.declaration import Declaration, StateSpec
from rivermark.process.api.side_outputs import SideOutput, SideSpec
from rivermark.process.api.state import TTL, Collection, ListState, MapState, ValueState
from rivermark.process.declaration.inputs import check_handler, find_inputs
from rivermark.process.declaration.type_arguments import (
    annotations_naming,
    arguments_for,
    substituted,
)
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


def is_open(cls: type, base: type) -> bool:
    """True if the class is a base for others: its event or output type is still a parameter."""
    return any(isinstance(each, TypeVar) for each in arguments_for(cls, base)) and bool(
        getattr(cls, "__parameters__", ())
    )


def declare(cls: Any, base: Any) -> Declaration:
    """Declaration of the process `cls`; sets up the attributes behind its list and map states."""
    name = cls.__name__
    arguments = arguments_for(cls, base)
    if len(arguments) != 2 or any(isinstance(each, TypeVar) for each in arguments):
        raise DeclarationError(
            f"process '{name}' does not say what it reads and writes: subclass KeyedProcess[Event, "
            "Out]"
        )
    event, out = arguments
    states = find_states(cls, base)
    inputs, key = find_inputs(cls, base, event)
    check_handler(cls, "on_timer", "at", "ctx")
    if not isinstance(cls.dead_letter, bool):
        raise DeclarationError(
            f"process '{name}': dead_letter must be True or False, not {cls.dead_letter!r}"
        )
    says_hold, says_order = (_says(cls, base, each) for each in ("hold", "order"))
    declaration = Declaration(
        name=name,
        version=cls.version,
        key=key,
        states=tuple(each for each in states if each.kind != "broadcast"),
        broadcasts=tuple(each for each in states if each.kind == "broadcast"),
        inputs=inputs,
        sides=_find_sides(cls),
        out=None if out in (None, type(None)) else Storable(out, f"process '{name}': its output"),
        order="event_time" if cls.hold is True and not says_order else cls.order,
        hold=cls.hold,
        decided=says_hold or (says_order and cls.order == "arrival"),
        dead_letter=cls.dead_letter,
        has_on_timer=cls.on_timer is not base.on_timer,
        migrations=cls.migrations,
        forgets=cls.forgets,
    )
    _check_order(declaration)
    _check_broadcasts(declaration)
    _check_evolution(declaration)
    _install_collections(cls, declaration.states)
    return declaration


def _says(cls: type, base: type, attribute: str) -> bool:
    """Returns True if a class, or one that it derives from, gives an attribute itself."""
    return any(attribute in owner.__dict__ for owner in cls.__mro__ if owner is not base)


def _find_sides(cls: type) -> dict[str, SideSpec]:
    """The side outputs of `cls` by tag."""
    sides: dict[str, SideSpec] = {}
    names: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        for name, value in owner.__dict__.items():
            if not isinstance(value, SideOutput):
                continue
            if names.get(value.tag, name) != name:
                raise DeclarationError(
                    f"process '{cls.__name__}': '{names[value.tag]}' and '{name}' have the "
                    f"same tag {value.tag!r}, so their rows could not be told apart; rename "
                    "one of them"
                )
            names[value.tag] = name
            what = f"process '{cls.__name__}': side output '{value.tag}'"
            sides[value.tag] = SideSpec(value, Storable(value.row, what))
    return sides


def _check_order(declared: Declaration) -> None:
    if declared.order not in ("arrival", "event_time"):
        raise DeclarationError(
            f"process '{declared.name}': order must be 'arrival' or 'event_time', not "
            f"{declared.order!r}"
        )
    if declared.hold and declared.order != "event_time":
        raise DeclarationError(
            f"process '{declared.name}' holds events until the watermark, which needs order = "
            '"event_time"'
        )
    if declared.order == "event_time":
        timeless = [each.name for each in declared.inputs if each.time is None]
        if timeless:
            raise DeclarationError(
                f"process '{declared.name}' handles events in order of their time, but input "
                f"'{timeless[0]}' has none: name its field, as in time = \"event_time\""
            )


def _check_broadcasts(declared: Declaration) -> None:
    if declared.broadcasts and not any(each.broadcast for each in declared.inputs):
        raise DeclarationError(
            f"process '{declared.name}': nothing can write broadcast state "
            f"'{declared.broadcasts[0].name}': it has no Broadcast input"
        )


def _check_evolution(declared: Declaration) -> None:
    names = {each.name for each in (*declared.states, *declared.broadcasts)}
    version: Any = declared.version
    if not isinstance(version, int) or version < 1:
        raise DeclarationError(f"process '{declared.name}': version must be a whole number from 1")
    for name in declared.migrations:
        if name not in names:
            raise DeclarationError(
                f"process '{declared.name}': a migration is given for '{name}', which is not a "
                f"state of it; its states are: {', '.join(sorted(names)) or 'none'}"
            )
    for name in declared.forgets:
        if name in names:
            raise DeclarationError(
                f"process '{declared.name}' forgets state '{name}' but still declares it"
            )


def _install_collections(cls: type, states: tuple[StateSpec, ...]) -> None:
    for slot, each in enumerate(states):
        if each.ttl is None and each.kind in ("list", "map"):
            setattr(
                cls, each.name, Collection(each.name, slot, list if each.kind == "list" else dict)
            )
