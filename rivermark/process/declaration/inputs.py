"""Finds the inputs that a process's class declares, and who handles each."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from msgspec import inspect as types

from rivermark.model.errors import DeclarationError
from rivermark.process.api.declaration import InputSpec
from rivermark.process.api.inputs import Broadcast, Input, KeyOf, TimeOf
from rivermark.process.evolution.shapes import RECORDS
from rivermark.process.evolution.storable import Storable, check_key_type

ONLY: Final = "events"
"""Name of the input of a process that declares none by name."""


def find_inputs(cls: Any, base: Any, event: Any) -> tuple[tuple[InputSpec, ...], Storable]:
    """The inputs of `cls` in the order in which they are handled, and the type of their key."""
    named = _named_inputs(cls)
    if not named:
        if cls.on_event is base.on_event:
            raise DeclarationError(f"process '{cls.__name__}' has no method on_event")
        if cls.key is None:
            raise DeclarationError(
                f"process '{cls.__name__}' has no key: name a field, as in key = \"ride_id\""
            )
        named = {ONLY: Input(event, key=cls.key, time=cls.time)}
        handlers = {ONLY: "on_event"}
    else:
        if _overrides_on_event(cls, base) or cls.key is not None or cls.time is not None:
            raise DeclarationError(
                f"process '{cls.__name__}' has inputs by name ({', '.join(named)}): their keys and "
                "times stand there, and each has its own handler instead of on_event"
            )
        handlers = _handlers(cls, named)
    for handler in handlers.values():
        check_handler(cls, handler, "event", "ctx")
    specs = [_spec(cls, name, each, handlers[name]) for name, each in named.items()]
    specs.sort(key=lambda each: 0 if each.broadcast else 1 if each.control else 2)
    return tuple(specs), _common_key(cls, specs)


def check_handler(cls: type, method: str, *arguments: str) -> None:
    """Refuse a method that cannot be called with as many arguments as the engine has for it."""
    function = getattr(cls, method)
    if not callable(function):
        raise DeclarationError(
            f"process '{cls.__name__}': {method} is {function!r}; write a method"
        )
    if inspect.isfunction(function):
        taken = inspect.signature(function)
        try:
            taken.bind("self", *arguments)
        except TypeError:
            names = ", ".join(taken.parameters)
            raise DeclarationError(
                f"process '{cls.__name__}': {method}({names}) is called with "
                f"(self, {', '.join(arguments)})"
            ) from None


def _named_inputs(cls: type) -> dict[str, Input[Any] | Broadcast[Any]]:
    named: dict[str, Input[Any] | Broadcast[Any]] = {}
    for owner in reversed(cls.__mro__):
        for name, value in owner.__dict__.items():
            if isinstance(value, Input | Broadcast):
                named[name] = value
    return named


def _overrides_on_event(cls: type, base: type) -> bool:
    """True if the class that declares inputs by name, or one below it, also writes on_event."""
    for owner in cls.__mro__:
        if owner is base:
            return False
        if "on_event" in owner.__dict__:
            return True
        if any(isinstance(each, Input | Broadcast) for each in owner.__dict__.values()):
            return False
    return False


def _handlers(cls: type, named: dict[str, Any]) -> dict[str, str]:
    handlers: dict[str, str] = {}
    for method, function in inspect.getmembers(cls, inspect.isfunction):
        marked = getattr(function, "handles", None)
        name = marked or method.removeprefix("on_")
        if marked is None and (not method.startswith("on_") or _is_of_open_base(cls, method)):
            continue
        if name not in named:
            raise DeclarationError(
                f"process '{cls.__name__}': method '{method}' handles an input '{name}' that is "
                f"not declared; inputs are: {', '.join(named)}"
            )
        if name in handlers:
            raise DeclarationError(
                f"process '{cls.__name__}': input '{name}' has two handlers, "
                f"'{handlers[name]}' and '{method}'"
            )
        handlers[name] = method
    for name in named:
        if name not in handlers:
            raise DeclarationError(
                f"process '{cls.__name__}': input '{name}' has no handler: write a method on_{name}"
            )
    return handlers


def _is_of_open_base(cls: type, method: str) -> bool:
    """True if a base for others has a method of that name, such as on_timer or on_window."""
    bases = (each for each in cls.__mro__[1:] if "declaration" not in each.__dict__)
    return any(method in each.__dict__ for each in bases)


def _spec(cls: type, name: str, declared: Input[Any] | Broadcast[Any], handler: str) -> InputSpec:
    what = f"process '{cls.__name__}': input '{name}'"
    event = Storable(declared.event, what)
    if not isinstance(event.info, RECORDS):
        raise DeclarationError(f"{what}: events are msgspec.Struct or dataclass, not {event.shape}")
    keyed = declared if isinstance(declared, Input) else None
    if declared.time is not None:
        _check_time(event, declared.time, what)
    return InputSpec(
        name=name,
        event=event,
        key=None if keyed is None else keyed.key,
        time=declared.time,
        handler=handler,
        control=keyed is not None and keyed.control,
    )


def _common_key(cls: type, inputs: list[InputSpec]) -> Storable:
    keys = {
        each.name: Storable(
            _key_type(each.event, each.key, f"process '{cls.__name__}': input '{each.name}'"),
            f"process '{cls.__name__}': key of '{each.name}'",
        )
        for each in inputs
        if each.key is not None
    }
    if not keys:
        raise DeclarationError(f"process '{cls.__name__}' has no keyed input")
    first = next(iter(keys.values()))
    for name, key in keys.items():
        check_key_type(key)
        if key.shape != first.shape:
            raise DeclarationError(
                f"process '{cls.__name__}': inputs must have one type of key, but '{name}' has "
                f"{key.shape} and '{next(iter(keys))}' has {first.shape}"
            )
    return first


def _key_type(event: Storable, key: KeyOf, what: str) -> Any:
    if isinstance(key, str):
        return _field_type(event, key, what)
    if isinstance(key, tuple):
        return tuple[tuple(_field_type(event, each, what) for each in key)]  # type: ignore[misc]
    return _returned(key, f"{what}: the key function")


def _field_type(event: Storable, name: str, what: str) -> Any:
    assert isinstance(event.info, RECORDS)  # noqa: S101  # checked by _spec
    for each in event.info.fields:
        if each.name == name:
            hints = typing.get_type_hints(getattr(event.of, "__origin__", event.of))
            return hints[name]
    known = ", ".join(each.name for each in event.info.fields)
    raise DeclarationError(f"{what}: {event.shape} has no field '{name}'; it has: {known}")


def _returned(function: Callable[[Any], Any], what: str) -> Any:
    if not callable(function):
        raise DeclarationError(f"{what} is {function!r}: name a field, or write a function of it")
    hint = typing.get_type_hints(function).get("return")
    if hint is None:
        raise DeclarationError(f"{what} must say what it returns, as in -> int")
    return hint


def _check_time(event: Storable, time: TimeOf, what: str) -> None:
    if not isinstance(time, str):
        if _returned(time, f"{what}: the time function") not in (int, datetime):
            raise DeclarationError(f"{what}: the time function must return int or datetime")
        return
    of = Storable(_field_type(event, time, what), what)
    if not isinstance(of.info, types.IntType | types.DateTimeType):
        raise DeclarationError(
            f"{what}: event time '{time}' is {of.shape}, not a datetime or integer milliseconds"
        )
