"""Declarations that are checked when they are made, and know where that was.

The annotations of a class say which values it takes; `declared` compares them with what a user
wrote, before anything is derived from it. What else a declaration needs stays in its
`__post_init__`. Every error names the declaration, and ends with its file and line. `checked` does
the same for functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import InitVar
from functools import cache, cached_property, wraps
from inspect import Parameter, signature
from types import GenericAlias
from typing import Any, Final, ParamSpec, TypeVar, get_type_hints

from rivermark.model.dependents import FAULTY, is_faulty, made_of_faulty
from rivermark.model.errors import DeclarationError
from rivermark.model.nearest import did_you_mean
from rivermark.model.place import Place, caller
from rivermark.model.type_check import Fits, fault_of, fitting

Class = TypeVar("Class", bound=type)
P = ParamSpec("P")
R = TypeVar("R")
Named = Callable[[Mapping[str, Any]], object]

PLACE: Final = "_declared_at"

_collected: list[DeclarationError] | None = None


def own_name(values: Mapping[str, Any]) -> object:
    """The name of most declarations: their argument `name`."""
    return values.get("name")


def declared(word: str, name: Named = own_name) -> Callable[[Class], Class]:
    """Check the arguments of a class when an object of it is made; raises DeclarationError.

    `word` is what its objects are called in errors, and `name` takes the name of one from its
    arguments. A list is taken for a tuple.
    """

    def decorate(cls: Class) -> Class:
        make: Callable[..., None] = cls.__init__  # type: ignore[misc]
        form = _Form(cls, make, word, name)

        @wraps(make)
        def checked(self: Any, *args: Any, **named: Any) -> None:
            place = caller()
            object.__setattr__(self, PLACE, place)
            values, faults = form.read(args, named)
            if _collected and (any(map(is_faulty, values.values())) or made_of_faulty()):
                _keep(self, values)
                return
            try:
                if faults:
                    raise DeclarationError(faults[0])
                make(self, **values)
            except DeclarationError as error:
                error.at(place)
                if _collected is None:
                    raise
                _collected.extend([error, *(DeclarationError(f).at(place) for f in faults[1:])])
                _keep(self, values)

        cls.__init__ = checked  # type: ignore[misc]
        return cls

    return decorate


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Check the arguments of a function that declares something; raises DeclarationError."""
    form = signature(function)

    @cache
    def expected() -> dict[str, tuple[Any, Fits]]:
        hints = get_type_hints(function)
        for name, parameter in form.parameters.items():
            if parameter.kind is Parameter.VAR_POSITIONAL:
                hints[name] = GenericAlias(tuple, (hints[name], ...))
        return {name: (hint, fitting(hint)) for name, hint in hints.items()}

    @wraps(function)
    def check(*args: P.args, **named: P.kwargs) -> R:
        try:
            try:
                bound = form.bind(*args, **named)
            except TypeError as error:
                unknown = sorted(named.keys() - form.parameters.keys())
                fault = f"it has no `{unknown[0]}`" if unknown else str(error)
                near = did_you_mean(unknown[0], form.parameters) if unknown else ""
                takes = near or f"; it takes {', '.join(form.parameters)}"
                raise DeclarationError(f"{function.__name__}: {fault}{takes}") from None
            for name, value in bound.arguments.items():
                hint, fits = expected()[name]
                if not fits(value):
                    raise DeclarationError(f"{function.__name__}: {fault_of(name, value, hint)}")
            return function(*args, **named)
        except DeclarationError as error:
            error.at(caller())
            raise

    return check


def place_of(declaration: object) -> Place | None:
    """The place of a declaration; None where no code of a user made it."""
    place: Place | None = getattr(declaration, PLACE, None)
    return place


@contextmanager
def collected_errors() -> Iterator[list[DeclarationError]]:
    """Collect the errors of all declarations made in this block, instead of raising the first.

    Those in error, and those made of them unchecked, are kept so that the code goes on: good for
    reporting what is wrong, and for nothing else. One fault is one error: what is made of a
    faulty declaration is not checked.
    """
    global _collected
    errors: list[DeclarationError] = []
    before, _collected = _collected, errors
    try:
        yield errors
    finally:
        _collected = before


def _keep(declaration: object, values: Mapping[str, Any]) -> None:
    """Fill in the arguments of a declaration that is not right."""
    object.__setattr__(declaration, FAULTY, True)
    for name, value in values.items():
        with suppress(DeclarationError):
            object.__setattr__(declaration, name, value)


class _Form:
    """The arguments of a class: their names and types."""

    def __init__(self, cls: type, make: Callable[..., None], word: str, name: Named) -> None:
        self._cls = cls
        self._word = word
        self._name = name
        self._parameters = dict(list(signature(make).parameters.items())[1:])
        self._by_position = [
            n for n, p in self._parameters.items() if p.kind is Parameter.POSITIONAL_OR_KEYWORD
        ]
        self._required = {n for n, p in self._parameters.items() if p.default is p.empty}

    def read(
        self, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[dict[str, Any], list[str]]:
        """The arguments by name, lists as tuples, and what is wrong with them in sentences."""
        values = dict(zip(self._by_position, args, strict=False)) | named
        faults = []
        if len(args) > len(self._by_position):
            first = next(iter(self._parameters))
            faults.append(f"write its values by name, as in {self._cls.__name__}({first}=...)")
        if unknown := named.keys() - self._parameters.keys():
            name = min(unknown)
            meant = did_you_mean(name, self._parameters)
            known = meant or f"; it takes {', '.join(self._parameters)}"
            faults.append(f"it has no `{name}`{known}")
        if missing := [name for name in self._parameters if name in self._required - values.keys()]:
            faults.append(f"`{'`, `'.join(missing)}` must be set")
        for name, value in values.items():
            if name not in self._fitting or self._fitting[name](value):
                continue
            if isinstance(value, list) and self._fitting[name](tuple(value)):
                values[name] = tuple(value)
            else:
                faults.append(fault_of(name, value, self._hints[name]))
        if not faults:
            return values, faults
        called = self._name(values)
        title = f"{self._word} '{called}'" if isinstance(called, str) else f"this {self._word}"
        return values, [f"{title}: {fault}" for fault in faults]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        """The types by name; without those that cannot be evaluated."""
        hints: dict[str, Any] = {}
        for owner in reversed(self._cls.__mro__):
            module = vars(sys.modules[owner.__module__])
            own = vars(owner)
            annotated = getattr(own.get("__init__"), "__annotations__", {})
            for name, hint in (annotated | own.get("__annotations__", {})).items():
                if name in self._parameters:
                    # A name that is imported for type checkers only is left to them.
                    with suppress(NameError):
                        hints[name] = _evaluated(hint, module)
        return hints

    @cached_property
    def _fitting(self) -> dict[str, Fits]:
        return {name: fitting(hint) for name, hint in self._hints.items()}


def _evaluated(hint: object, module: dict[str, Any]) -> Any:
    def holder() -> None: ...

    holder.__annotations__ = {"hint": hint}
    evaluated = get_type_hints(holder, module)["hint"]
    return evaluated.type if isinstance(evaluated, InitVar) else evaluated
