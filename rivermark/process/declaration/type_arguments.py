"""Type arguments of generic classes, followed through their bases."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from typing import Any, TypeVar

from rivermark.model.errors import DeclarationError


def arguments_for(cls: type, base: type) -> tuple[Any, ...]:
    """The arguments of `cls` for the parameters of `base`; an open one stays a TypeVar."""
    return _bindings(cls).get(base, ())


def substituted(of: Any, cls: type, owner: type) -> Any:
    """`of`, an annotation of `owner`, with the parameters of `owner` as `cls` sets them."""
    open_ones = getattr(owner, "__parameters__", ())
    bound = dict(zip(open_ones, _bindings(cls).get(owner, open_ones), strict=False))
    return _replace(of, bound)


def annotations_naming(cls: type, words: tuple[str, ...]) -> dict[str, Any]:
    """The class's own annotations that mention one of `words`, as types.

    The others are left unread: they may name what exists for type checkers only.
    """
    own = {
        name: text
        for name, text in inspect.get_annotations(cls).items()
        if any(word in (text if isinstance(text, str) else repr(text)) for word in words)
    }
    globalns = vars(sys.modules[cls.__module__]) if cls.__module__ in sys.modules else {}
    try:
        return typing.get_type_hints(
            types.SimpleNamespace(__annotations__=own), globalns, dict(vars(cls))
        )
    except NameError as error:
        raise DeclarationError(
            f"process '{cls.__name__}': {error}; types of state must be names of the module in "
            "which the class stands, imported at run time"
        ) from error


def _bindings(cls: type) -> dict[Any, tuple[Any, ...]]:
    """Each generic base of `cls` with the arguments that `cls` gives it."""
    bindings: dict[Any, tuple[Any, ...]] = {}
    _collect(cls, {}, bindings)
    return bindings


def _collect(cls: type, bound: dict[TypeVar, Any], bindings: dict[Any, tuple[Any, ...]]) -> None:
    for base in getattr(cls, "__orig_bases__", cls.__bases__):
        origin = typing.get_origin(base) or base
        if origin is typing.Generic or not isinstance(origin, type):
            continue
        arguments = tuple(_replace(each, bound) for each in typing.get_args(base))
        parameters = getattr(origin, "__parameters__", ())
        if arguments or not parameters:
            bindings.setdefault(origin, arguments)
        else:
            bindings.setdefault(origin, parameters)
        if origin is not object:
            _collect(origin, dict(zip(parameters, arguments, strict=False)), bindings)


def _replace(of: Any, bound: dict[TypeVar, Any]) -> Any:
    if isinstance(of, TypeVar):
        return bound.get(of, of)
    parameters = getattr(of, "__parameters__", ())
    if not parameters or isinstance(of, type):
        return of
    return of[tuple(bound.get(each, each) for each in parameters)]
