"""What a process function means, as facts that are the same in every Python process.

Stored state fits a schema by its shape. Whether it also means what the class means by it, only the
class's code says: with minimum and maximum swapped the shapes are the same. So a checkpoint keeps
these facts: the code of the class and of what it calls in its own package and in others that are
not installed, the constants and parameters that they use. Code counts by its syntax tree, so
comments, docstrings, annotations, layout and the names of local variables are no change. The
library, and packages that are installed, count by name alone.

Facts have the names of functions and constants, for people. Whether two meanings are the same is
said by their digest, in which what a name stands for is in its place: a helper that has another
name computes the same.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import logging
import re
import sys
import sysconfig
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import _lru_cache_wrapper, cache, cached_property, partial
from operator import attrgetter, itemgetter, methodcaller
from pathlib import Path, PurePath
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final
from uuid import UUID

import msgspec

from rivermark.process.code_names import names_in
from rivermark.process.evolution.source_files import (
    assigned,
    assigned_in,
    file_of,
    imported_from,
    imported_within,
    source_of,
)
from rivermark.process.evolution.syntax import Named, shape

PLAIN: Final = (str, bytes, int, float, bool, Decimal, timedelta, datetime, date, time, type(None))
SPELLED: Final = (
    *(re.Pattern, tzinfo, Fraction, UUID, PurePath, range, complex),
    *(itemgetter, attrgetter, methodcaller),
)
"""Types of other packages whose values are told by their text, the same in every version."""
LIBRARY: Final = "rivermark"
SAID_OTHERWISE: Final = frozenset(
    {"declaration", "version", "migrations", "forgets", "dead_letter", "order", "hold"}
)
"""Attributes of a class that its schema says already, or that change no meaning of its state."""
SHORT: Final = 60
"""Characters up to which the text of an expression is kept as it is."""
MADE: Final = "<string>"
"""The file of methods that were made of a class's fields, as those of dataclasses."""
FIELD: Final = "field "
"""Before the default of a struct's field: one that is new changes nothing that was stored."""
MOST_IMPORTS: Final = 8
"""Through how many modules an imported name is followed."""
INSTALLED: Final = frozenset({"site-packages", "dist-packages"})
TOKEN: Final = re.compile("\0(\\d+)\0")
"""In place of a function's name in a text: which function it is."""
ROUNDS: Final = 8
"""How many calls deep two functions of equal code are told apart by what they call; the code of
each function counts by itself, however deep it lies."""


@dataclass(frozen=True)
class Meaning:
    """What code means: facts by name, and the digest of all of them without names of functions."""

    facts: dict[str, str]
    digest: str


def meaning_of(cls: type, made_by: object) -> Meaning:
    """The meaning of a process's class and of the callable, with its parameters, that makes it."""
    collected = _Collector(root=cls.__module__.partition(".")[0])
    collected.of_class(cls)
    collected.note("parameters", collected.canonical(made_by))
    return collected.meaning()


def meaning_of_function(function: object) -> Meaning:
    """The meaning of a function of its own, such as one that prepares an input."""
    collected = _Collector(root=str(getattr(function, "__module__", "")).partition(".")[0])
    collected.note("is", collected.canonical(function))
    return collected.meaning()


class _Collector:
    def __init__(self, root: str) -> None:
        self._noted: dict[str, set[tuple[str, str]]] = {}
        self._root = root
        self._seen: set[int] = set()
        self._objects: set[tuple[str, str]] = set()
        self._functions: dict[int, FunctionType] = {}
        self._texts: dict[int, list[str]] = {}
        """Of each function the texts that say what it does, with tokens for others."""
        self._nameless: set[str] = set()

    def meaning(self) -> Meaning:
        """All that was noted, by name; in the order of modules where several have the name."""
        noted = sorted(self._noted.items())
        facts = {fact: ", ".join(text for _, text in sorted(texts)) for fact, texts in noted}
        return Meaning(facts, self._digest_of_all())

    def _digest_of_all(self) -> str:
        digests: dict[int, str] = {}

        def filled(text: str) -> str:
            return TOKEN.sub(lambda token: digests.get(int(token[1]), ""), text)

        for _ in range(ROUNDS):
            digests |= {
                each: _digest(filled("\n".join(texts))) for each, texts in self._texts.items()
            }
        return _digest("\n".join(sorted([*map(filled, self._nameless), *digests.values()])))

    def note(
        self,
        fact: str,
        text: str,
        module: str = "",
        *,
        of: FunctionType | None = None,
        said: str | None = None,
        named: bool = True,
    ) -> None:
        """Add a fact of a module, which belongs to a function where it is `of` one.

        `said` is what people read instead of the text. The name of one that is not `named` is left
        out of the digest, as those of functions are.
        """
        said = TOKEN.sub(lambda token: self._functions[int(token[1])].__qualname__, said or text)
        self._noted.setdefault(fact, set()).add((module, said))
        if of is not None:
            self._texts.setdefault(id(of), []).append(text)
        else:
            self._nameless.add(f"{fact}={text}" if named else text)

    def of_class(self, cls: type) -> None:
        """The methods and values of a class and of those it derives from."""
        if id(cls) in self._seen:
            return
        self._seen.add(id(cls))
        for owner in reversed(cls.__mro__):
            if not self._is_own(owner.__module__):
                continue
            kind = FIELD if issubclass(owner, msgspec.Struct) or is_dataclass(owner) else ""
            for value in owner.__dict__.values():
                member = _unwrapped(value)
                if isinstance(member, FunctionType):
                    self.of_function(member)
                elif isinstance(member, type) and not issubclass(member, msgspec.Struct):
                    self.of_class(member)
            for name, expression in assigned(owner):
                if not name.startswith("__") and name not in SAID_OTHERWISE:
                    fact = f"{kind}{owner.__name__}.{name}"
                    self._of_expression(fact, [expression], owner.__module__)

    def of_function(self, function: FunctionType) -> None:
        """Its code, and what it uses: globals of its package, values that it closes over."""
        if id(function) in self._seen or not self._is_own(function.__module__):
            return
        self._seen.add(id(function))
        if function.__code__.co_filename == MADE:
            return
        name, module = function.__qualname__, function.__module__
        replaced: set[str] = set()
        source = source_of(function, self._named_in(function.__globals__, replaced))
        self.note(
            f"code of {name}",
            # A method is called by its name, which nothing here can follow.
            f"{name if _is_method(function) else ''} {source}",
            module,
            of=function,
            said=_digest(source_of(function)),
        )
        for variable, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            if variable == "__class__":
                continue
            try:
                value = self.canonical(cell.cell_contents)
            except ValueError:
                continue  # not set yet
            self.note(f"{variable} in {name}", value, module, of=function)
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        if defaults:
            self.note(f"defaults of {name}", self.canonical(defaults), module, of=function)
        names = names_in(function.__code__)
        self._of_globals(names, function.__globals__, replaced)
        for imported in filter(self._is_own, imported_within(function)):
            self._of_globals(names, _globals_of(imported), replaced)

    def _named_in(self, scope: Mapping[str, Any], replaced: set[str]) -> Named:
        """What stands in the digest for names of a module's own functions and constants.

        Adds the names of those constants to the ones that are `replaced`.
        """

        def named(dotted: str) -> str | None:
            first, *rest = dotted.split(".")
            value = scope.get(first)
            for part in rest:
                if not isinstance(value, ModuleType) or not self._is_own(value.__name__):
                    return None
                value = vars(value).get(part)
            value = _unwrapped(value)
            if isinstance(value, FunctionType):
                return self._token(value) if self._is_own(value.__module__) else None
            if isinstance(value, (*PLAIN, Enum)) and value is not None:
                replaced.add(dotted.rpartition(".")[2])
                return self.canonical(value)
            return None

        return named

    def _token(self, function: FunctionType) -> str:
        self._functions[id(function)] = function
        self.of_function(function)
        return f"\0{id(function)}\0"

    def _of_expression(self, fact: str, written: list[ast.expr], module: str) -> None:
        """Expressions as they are written in a module, and what they use of it.

        Not what they come to: an object of the library looks another way inside after each upgrade,
        and a collection may be filled while the process runs.
        """
        text = "; ".join(map(ast.unparse, written))
        said = text if len(text) <= SHORT else _digest(shape(written))
        scope = getattr(sys.modules.get(module), "__dict__", {})
        replaced: set[str] = set()
        self.note(fact, shape(written, self._named_in(scope, replaced)), module, said=said)
        names = (n.id for each in written for n in ast.walk(each) if isinstance(n, ast.Name))
        self._of_globals(names, scope, replaced)

    def _of_globals(
        self, names: Iterable[str], scope: Mapping[str, Any], replaced: Collection[str]
    ) -> None:
        """Globals of a module; constants by name, but for those that are `replaced` in the code."""
        chosen, module = set(names), str(scope.get("__name__"))
        for name in sorted(chosen):
            value = _unwrapped(scope.get(name))
            if isinstance(value, ModuleType):
                if self._is_own(value.__name__):
                    self._of_globals(chosen - {name}, vars(value), replaced)
            elif isinstance(value, type) and self._is_own(value.__module__):
                self.of_class(value)
            elif isinstance(value, FunctionType) and self._is_own(value.__module__):
                self.of_function(value)
            elif name not in scope or isinstance(value, logging.Logger):
                continue
            elif isinstance(value, (*PLAIN, Enum)) or _is_constant(name, value):
                named = name not in replaced
                self.note(f"constant {name}", self.canonical(value), module, named=named)
            elif (called := _name_of(value)) is not None:
                if called != name:  # A function of others under a name of one's own.
                    self.note(f"constant {name}", called, module)
            elif self._is_own(module):
                self._of_object_at(name, module)

    def _of_object_at(self, name: str, module: str) -> None:
        """A global that is an object or a collection: by the statements of its module."""
        for _ in range(MOST_IMPORTS):
            file = file_of(sys.modules.get(module))
            written = [value for target, value in assigned_in(file) if target == name]
            if written:
                if (module, name) not in self._objects:
                    self._objects.add((module, name))
                    self._of_expression(f"constant {name}", written, module)
                return
            origin = imported_from(file, name, module)
            if origin is None or not self._is_own(origin[0]):
                return
            module, name = origin

    def canonical(self, value: object) -> str:
        """A value as text without ids, paths or an order that differs between processes."""
        if self._is_own(type(value).__module__):
            self.of_class(type(value))
        if isinstance(value, Enum):
            return f"{type(value).__name__}.{value.name}"
        if isinstance(value, (*PLAIN, *SPELLED)):
            return repr(value)
        if isinstance(value, Mapping):
            pairs = ((self.canonical(k), self.canonical(v)) for k, v in value.items())
            return "{" + ", ".join(f"{k}: {v}" for k, v in sorted(pairs)) + "}"
        if isinstance(value, set | frozenset):
            return "{" + ", ".join(sorted(map(self.canonical, value))) + "}"
        if isinstance(value, list | tuple):
            return "[" + ", ".join(map(self.canonical, value)) + "]"
        if isinstance(value, partial):
            named = [f"{k}={self.canonical(v)}" for k, v in sorted(value.keywords.items())]
            arguments = ", ".join([*map(self.canonical, value.args), *named])
            return f"{self.canonical(value.func)}({arguments})"
        if isinstance(value, MethodType):
            return f"{self.canonical(value.__func__)} of {self.canonical(value.__self__)}"
        function = _unwrapped(value)
        if isinstance(function, FunctionType):
            return (
                self._token(function)
                if self._is_own(function.__module__)
                else function.__qualname__
            )
        if isinstance(value, type) and self._is_own(value.__module__):
            self.of_class(value)
        return _name_of(value) or self._of_object(value)

    def _of_object(self, value: object) -> str:
        """An object of the package's own by its fields; of others, what is inside is theirs."""
        name = type(value).__qualname__
        if id(value) in self._seen or not self._is_own(type(value).__module__):
            return name
        self._seen.add(id(value))
        if isinstance(value, msgspec.Struct):
            held = {each: getattr(value, each) for each in value.__struct_fields__}
        else:
            slots = (s for c in type(value).__mro__ for s in _slots_of(c) if hasattr(value, s))
            held = {s: getattr(value, s) for s in slots} | getattr(value, "__dict__", {})
        return f"{name}({self.canonical(held)})"

    def _is_own(self, module: str | None) -> bool:
        """Whether a module is the declaration's, or another one of those who declare it."""
        root = (module or "").partition(".")[0]
        return root != LIBRARY and (root == self._root or not _is_installed(root))


@cache
def _is_installed(root: str) -> bool:
    """Whether a package is Python's, was installed, or lies in no file."""
    try:
        spec = getattr(sys.modules.get(root), "__spec__", None) or importlib.util.find_spec(root)
    except (ImportError, ValueError):
        return True
    places = [spec.origin] if spec and spec.has_location else []
    places += [] if spec is None else (spec.submodule_search_locations or [])
    library = Path(sysconfig.get_path("stdlib"))
    paths = [Path(place) for place in places if place]
    return not paths or any(
        INSTALLED.intersection(path.parts) or path.is_relative_to(library) for path in paths
    )


def _globals_of(module: str) -> Mapping[str, Any]:
    """What is in a module; nothing where it is none, or cannot be imported here."""
    try:
        return vars(importlib.import_module(module))
    except Exception:
        return {}


def _is_method(function: FunctionType) -> bool:
    return "." in function.__qualname__.rpartition("<locals>.")[2]


def _unwrapped(value: Any) -> Any:
    """The function within a method, a property or a cache; any other value as it is."""
    match value:
        case staticmethod() | classmethod():
            return _unwrapped(value.__func__)
        case property():
            return _unwrapped(value.fget)
        case cached_property():
            return _unwrapped(value.func)
        case _lru_cache_wrapper():
            return _unwrapped(value.__wrapped__)
        case _:
            return value


def _name_of(value: object) -> str | None:
    """The name of a function or class; None of what is neither."""
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    return name if callable(value) and isinstance(name, str) else None


def _slots_of(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else slots
    return tuple(name for name in names if not name.startswith("__"))


def _is_constant(name: str, value: object) -> bool:
    """Whether a collection at the top of a module is one that nothing fills: by its name."""
    return name.isupper() and isinstance(value, (tuple, frozenset, list, dict, set))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
