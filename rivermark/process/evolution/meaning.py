"""What a process function means, as facts that are the same in every Python process.

Stored state fits a schema by its shape. Whether it also means what the class means by it, only the
class's code says: with minimum and maximum swapped the shapes are the same. So a checkpoint keeps
these facts: the code of the class and of what it calls in its own package, the constants and
parameters that they use. Code counts by its syntax tree, so comments, docstrings, annotations and
layout are no change. The library, and packages that are installed, count by name alone.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import _lru_cache_wrapper, cache, cached_property, partial
from types import FunctionType, ModuleType
from typing import Any, Final

import msgspec

from rivermark.process.code_names import names_in

PLAIN: Final = (str, bytes, int, float, bool, Decimal, timedelta, datetime, date, time, type(None))
LIBRARY: Final = "rivermark"
SAID_OTHERWISE: Final = frozenset(
    {"declaration", "version", "migrations", "forgets", "dead_letter", "order", "hold"}
)
"""Attributes of a class that its schema says already, or that change no meaning of its state."""
SHORT: Final = 60
"""Characters up to which the text of an expression is kept as it is."""
IGNORED: Final = frozenset({"annotation", "returns", "ctx", "type_comment", "kind", "type_params"})
"""Fields of a syntax tree that change nothing of what the code does."""


def meaning_of(cls: type, made_by: object) -> dict[str, str]:
    """The facts of a process's class and of the callable, with its parameters, that makes it."""
    collected = _Collector(root=cls.__module__.partition(".")[0])
    collected.of_class(cls)
    collected.facts["parameters"] = collected.canonical(made_by)
    return dict(sorted(collected.facts.items()))


def meaning_of_function(function: object) -> dict[str, str]:
    """The facts of a function of its own, such as one that prepares an input."""
    collected = _Collector(root=str(getattr(function, "__module__", "")).partition(".")[0])
    collected.facts["is"] = collected.canonical(function)
    return dict(sorted(collected.facts.items()))


class _Collector:
    def __init__(self, root: str) -> None:
        self.facts: dict[str, str] = {}
        self._root = root
        self._seen: set[int] = set()

    def of_class(self, cls: type) -> None:
        """The methods and values of a class and of those it derives from."""
        if id(cls) in self._seen:
            return
        self._seen.add(id(cls))
        for owner in reversed(cls.__mro__):
            if not self._is_own(owner.__module__):
                continue
            for value in owner.__dict__.values():
                member = _unwrapped(value)
                if isinstance(member, FunctionType):
                    self.of_function(member)
            scope = getattr(sys.modules.get(owner.__module__), "__dict__", {})
            for name, expression in _assigned(owner):
                if not name.startswith("_") and name not in SAID_OTHERWISE:
                    text = ast.unparse(expression)
                    short = text if len(text) <= SHORT else _digest(_shape(expression))
                    self.facts[f"{owner.__name__}.{name}"] = short
                    used = (n.id for n in ast.walk(expression) if isinstance(n, ast.Name))
                    self._of_globals(used, scope)

    def of_function(self, function: FunctionType) -> None:
        """Its code, and what it uses: globals of its package, values that it closes over."""
        if id(function) in self._seen or not self._is_own(function.__module__):
            return
        self._seen.add(id(function))
        fact = f"code of {function.__qualname__}"
        digest = _digest(_source_of(function))
        self.facts[fact] = f"{self.facts[fact]}, {digest}" if fact in self.facts else digest
        for name, cell in zip(
            function.__code__.co_freevars, function.__closure__ or (), strict=True
        ):
            if name == "__class__":
                continue
            try:
                value = self.canonical(cell.cell_contents)
            except ValueError:
                continue  # not set yet
            self.facts[f"{name} in {function.__qualname__}"] = value
        defaults = (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
        if defaults:
            self.facts[f"defaults of {function.__qualname__}"] = self.canonical(defaults)
        self._of_globals(names_in(function.__code__), function.__globals__)

    def _of_globals(self, names: Iterable[str], scope: Mapping[str, Any]) -> None:
        chosen = set(names)
        for name in sorted(chosen):
            value = _unwrapped(scope.get(name))
            if isinstance(value, ModuleType):
                if self._is_own(value.__name__):
                    self._of_globals(chosen - {name}, vars(value))
            elif isinstance(value, FunctionType):
                self.of_function(value)
            elif isinstance(value, type):
                if self._is_own(value.__module__):
                    self.of_class(value)
            elif name in scope and (isinstance(value, (*PLAIN, Enum)) or _is_constant(name, value)):
                self.facts[f"constant {name}"] = self.canonical(value)

    def canonical(self, value: object) -> str:
        """A value as text without ids, paths or an order that differs between processes."""
        if isinstance(value, PLAIN):
            return repr(value)
        if isinstance(value, Enum):
            return f"{type(value).__name__}.{value.name}"
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
        function = _unwrapped(value)
        if isinstance(function, FunctionType):
            self.of_function(function)
            return function.__qualname__
        if isinstance(value, type):
            return value.__qualname__
        return self._of_object(value)

    def _of_object(self, value: object) -> str:
        """An object of the package's own by its fields; of others, what is inside is theirs."""
        name = type(value).__qualname__
        if id(value) in self._seen or not self._is_own(type(value).__module__):
            return name
        self._seen.add(id(value))
        if isinstance(value, msgspec.Struct):
            held = {each: getattr(value, each) for each in value.__struct_fields__}
        else:
            held = dict(getattr(value, "__dict__", {}))
        return f"{name}({self.canonical(held)})"

    def _is_own(self, module: str | None) -> bool:
        root = (module or "").partition(".")[0]
        return root == self._root and root != LIBRARY


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


def _is_constant(name: str, value: object) -> bool:
    """Whether a collection at the top of a module is one that nothing fills: by its name."""
    return name.isupper() and isinstance(value, (tuple, frozenset, list, dict, set))


def _assigned(cls: type) -> Iterator[tuple[str, ast.expr]]:
    """The values that the body of a class gives to names, as it writes them.

    Not what they are: an object of the library looks another way inside after each upgrade.
    """
    nodes = [
        node
        for node in _nodes(_file_of(cls))
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    ]
    for statement in nodes[-1].body if nodes else ():
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Name):
                yield target.id, value


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def _source_of(function: FunctionType) -> str:
    """The syntax trees at the function's place; of lambdas all that begin in its line."""
    code = function.__code__
    shapes = [
        _shape(node)
        for node in _nodes(_file_of(function))
        if not isinstance(node, ast.ClassDef)
        and _begins(node) == code.co_firstlineno
        and getattr(node, "name", "<lambda>") == code.co_name
    ]
    return "; ".join(shapes) or "unknown"


def _file_of(value: Any) -> str:
    """The file that defines it; empty for what was typed in, of which nothing can be compared."""
    try:
        return inspect.getsourcefile(value) or ""
    except (TypeError, OSError):
        return ""


@cache
def _nodes(file: str) -> list[ast.AST]:
    """Functions and classes of a file as it was at the first call: that of the code that runs."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
    return [node for node in ast.walk(tree) if isinstance(node, kinds)]


def _begins(node: Any) -> int:
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])
    return int(first)


def _shape(node: object) -> str:
    """A syntax tree as text, the same in every version of Python."""
    if isinstance(node, list):
        return "[" + ",".join(map(_shape, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    parts = []
    for name, value in ast.iter_fields(node):
        if name in IGNORED or value is None or value == []:
            continue
        if name == "body" and isinstance(value, list) and _is_docstring(value[0]):
            value = value[1:]
        parts.append(f"{name}={_shape(value)}")
    return f"{type(node).__name__}({','.join(parts)})"


def _is_docstring(node: object) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
