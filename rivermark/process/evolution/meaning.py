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
import inspect
import linecache
import logging
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from functools import _lru_cache_wrapper, cache, cached_property, partial
from itertools import chain
from operator import attrgetter, itemgetter, methodcaller
from pathlib import Path, PurePath
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final
from uuid import UUID

import msgspec

from rivermark.process.code_names import names_in

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
IGNORED: Final = frozenset({"annotation", "returns", "ctx", "type_comment", "kind", "type_params"})
"""Fields of a syntax tree that change nothing of what the code does."""
FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
CAPTURES: Final[dict[type[ast.AST], str]] = {
    ast.FunctionDef: "name",
    ast.AsyncFunctionDef: "name",
    ast.ExceptHandler: "name",
    ast.MatchAs: "name",
    ast.MatchStar: "name",
    ast.MatchMapping: "rest",
}
"""Nodes that set a variable without an `ast.Name`, with the field that says which."""
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

Named = Callable[[str], str | None]
"""What stands for a dotted name of a module in its place; None for the name itself."""


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
            for name, expression in _assigned(owner):
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
        source = _source_of(function, self._named_in(function.__globals__))
        self.note(
            f"code of {name}",
            # A method is called by its name, which nothing here can follow.
            f"{name if _is_method(function) else ''} {source}",
            module,
            of=function,
            said=_digest(_source_of(function)),
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
        self._of_globals(names, function.__globals__)
        for imported in _imported_within(function):
            if self._is_own(imported):
                self._of_globals(names, vars(importlib.import_module(imported)))

    def _named_in(self, scope: Mapping[str, Any]) -> Named:
        """What stands in the digest for names of a module's own functions and constants."""

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
        said = text if len(text) <= SHORT else _digest(_shape(written))
        scope = getattr(sys.modules.get(module), "__dict__", {})
        self.note(fact, _shape(written, self._named_in(scope)), module, said=said)
        names = (n.id for each in written for n in ast.walk(each) if isinstance(n, ast.Name))
        self._of_globals(names, scope)

    def _of_globals(self, names: Iterable[str], scope: Mapping[str, Any]) -> None:
        chosen, module = set(names), str(scope.get("__name__"))
        for name in sorted(chosen):
            value = _unwrapped(scope.get(name))
            if isinstance(value, ModuleType):
                if self._is_own(value.__name__):
                    self._of_globals(chosen - {name}, vars(value))
            elif isinstance(value, type) and self._is_own(value.__module__):
                self.of_class(value)
            elif isinstance(value, FunctionType) and self._is_own(value.__module__):
                self.of_function(value)
            elif name not in scope or isinstance(value, logging.Logger):
                continue
            elif isinstance(value, (*PLAIN, Enum)) or _is_constant(name, value):
                plain = isinstance(value, (*PLAIN, Enum))
                self.note(f"constant {name}", self.canonical(value), module, named=not plain)
            elif (named := _name_of(value)) is not None:
                if named != name:  # A function of others under a name of one's own.
                    self.note(f"constant {name}", named, module)
            elif self._is_own(module):
                self._of_object_at(name, module)

    def _of_object_at(self, name: str, module: str) -> None:
        """A global that is an object or a collection: by the statements of its module."""
        for _ in range(MOST_IMPORTS):
            file = _file_of(sys.modules.get(module))
            written = [value for target, value in _assigned_in(file) if target == name]
            if written:
                if (module, name) not in self._objects:
                    self._objects.add((module, name))
                    self._of_expression(f"constant {name}", written, module)
                return
            origin = _imported_from(file, name, module)
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


def _assigned(cls: type) -> Iterator[tuple[str, ast.expr]]:
    """The values that the body of a class gives to names."""
    nodes = [
        node
        for node in _nodes(_file_of(cls))
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    ]
    for statement in nodes[-1].body if nodes else ():
        yield from _assigned_by(statement)


def _assigned_in(file: str) -> Iterator[tuple[str, ast.expr]]:
    """The values that the statements at the top of a module give to names, or to their items."""
    for statement in _tree(file).body:
        yield from _assigned_by(statement)


def _assigned_by(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    match statement:
        case ast.Assign(targets=targets, value=value):
            for name in chain.from_iterable(map(_changed, targets)):
                yield name, value
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
        ):
            for name in _changed(target):
                yield name, value


def _changed(target: ast.expr) -> Iterator[str]:
    """The variables that an assignment to that target changes, or of which it changes an item."""
    match target:
        case ast.Name(id=name):
            yield name
        case ast.Subscript(value=value) | ast.Attribute(value=value) | ast.Starred(value=value):
            yield from _changed(value)
        case ast.Tuple(elts=places) | ast.List(elts=places):
            for place in places:
                yield from _changed(place)


def _imported_from(file: str, name: str, module: str) -> tuple[str, str] | None:
    """From which module, and as what there, the top of a module imports a name."""
    for statement in _tree(file).body:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    package = getattr(sys.modules.get(module), "__package__", None) or ""
                    parts = package.split(".")
                    above = parts[: len(parts) - statement.level + 1] if statement.level else []
                    named = [statement.module] if statement.module else []
                    return ".".join([*above, *named]), alias.name
    return None


def _imported_within(function: FunctionType) -> Iterator[str]:
    """The modules that a function imports when it runs."""
    package = str(function.__globals__.get("__package__") or "")
    for node in _nodes_of(function):
        for each in ast.walk(node):
            if isinstance(each, ast.Import):
                yield from (alias.name for alias in each.names)
            elif isinstance(each, ast.ImportFrom):
                yield importlib.util.resolve_name("." * each.level + (each.module or ""), package)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _source_of(function: FunctionType, named: Named | None = None) -> str:
    """The syntax trees at the function's place; without its own name."""
    return "; ".join(_shape(node, named) for node in _nodes_of(function)) or "unknown"


def _nodes_of(function: FunctionType) -> list[ast.AST]:
    """The syntax trees at the function's place; of lambdas all that begin in its line."""
    code = function.__code__
    return [
        node
        for node in _nodes(_file_of(function))
        if not isinstance(node, ast.ClassDef)
        and _begins(node) == code.co_firstlineno
        and getattr(node, "name", "<lambda>") == code.co_name
    ]


def _file_of(value: Any) -> str:
    """The file that defines it; empty for what was typed in, of which nothing can be compared."""
    try:
        return inspect.getsourcefile(value) or ""
    except (TypeError, OSError):
        return ""


@cache
def _tree(file: str) -> ast.Module:
    """A file as it was at the first call: that of the code that runs."""
    try:
        return ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return ast.Module([], [])


@cache
def _nodes(file: str) -> list[ast.AST]:
    """Functions and classes of a file."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    return [node for node in ast.walk(_tree(file)) if isinstance(node, kinds)]


def _begins(node: Any) -> int:
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    return int(first)


def _shape(node: object, named: Named | None = None) -> str:
    """A syntax tree as text, the same in every version of Python and for all names of variables.

    `named` says what stands for names of the module around it; a function's own name is left out.
    """
    if not isinstance(node, FUNCTIONS):
        return _Shape(frozenset(), named).text(node)
    return _Shape(_bound_in(node), named).text(node, without=("name",))


def _bound_in(function: ast.AST) -> frozenset[str]:
    """The variables of a function, and of those within it, that nothing outside can name."""
    bound: set[str] = set()
    shared: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                shared.update(names)
            case ast.arg(arg=name):
                shared.add(name)  # A caller may name it.
            case _ if type(node) in CAPTURES and node is not function:
                bound.add(getattr(node, CAPTURES[type(node)]))
    return frozenset(bound - shared)


class _Shape:
    """Writes a syntax tree as text, with variables numbered in the order in which they occur."""

    def __init__(self, local: frozenset[str], named: Named | None) -> None:
        self._local = local
        self._named = named
        self._numbers: dict[str, int] = {}

    def text(self, node: object, without: tuple[str, ...] = ()) -> str:
        """A node without some of its fields."""
        if isinstance(node, list):
            return "[" + ",".join(self.text(each) for each in node if not _says_nothing(each)) + "]"
        if isinstance(node, ast.Name) and node.id in self._local:
            return f"#{self._numbers.setdefault(node.id, len(self._numbers))}"
        if not isinstance(node, ast.AST):
            return repr(node)
        if self._named is not None and (dotted := _dotted(node)) is not None:
            variable = dotted.partition(".")[0] in self._local
            if not variable and (stands := self._named(dotted)) is not None:
                return stands
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            node = ast.Assign([node.target], node.value)
        captures = CAPTURES.get(type(node))
        parts = [
            f"{name}={self.text(ast.Name(value) if name == captures else value)}"
            for name, value in ast.iter_fields(node)
            if name not in IGNORED and name not in without and value is not None and value != []
        ]
        return f"{type(node).__name__}({','.join(parts)})"


def _dotted(node: ast.AST) -> str | None:
    """The name that an expression reads, with those of the modules before it."""
    match node:
        case ast.Name(id=name, ctx=ast.Load()):
            return name
        case ast.Attribute(value=value, attr=name, ctx=ast.Load()):
            before = _dotted(value)
            return None if before is None else f"{before}.{name}"
    return None


def _says_nothing(node: object) -> bool:
    """Whether a statement is a docstring, an ellipsis, `pass`, or an annotation alone."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Pass() | ast.AnnAssign(value=None):
            return True
    return False
