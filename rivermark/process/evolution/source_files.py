"""What source files say of the code that runs: its syntax trees, assignments and imports."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import linecache
import sys
from collections.abc import Iterator
from functools import cache
from itertools import chain
from types import FunctionType
from typing import Any

from rivermark.process.evolution.syntax import Named, shape


def assigned(cls: type) -> Iterator[tuple[str, ast.expr]]:
    """The values that the body of a class gives to names."""
    nodes = [
        node
        for node in _nodes(file_of(cls))
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__
    ]
    for statement in nodes[-1].body if nodes else ():
        yield from _assigned_by(statement)


def assigned_in(file: str) -> Iterator[tuple[str, ast.expr]]:
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


def imported_from(file: str, name: str, module: str) -> tuple[str, str] | None:
    """From which module, and as what there, the top of a module imports a name."""
    for statement in _tree(file).body:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    package = getattr(sys.modules.get(module), "__package__", None)
                    return _module_of(statement, package or ""), alias.name
    return None


def imported_within(function: FunctionType) -> Iterator[str]:
    """The names of modules that a function imports when it runs, and of what may be one."""
    package = str(function.__globals__.get("__package__") or "")
    for node in _nodes_of(function):
        for each in ast.walk(node):
            if isinstance(each, ast.Import):
                yield from (alias.name for alias in each.names)
            elif isinstance(each, ast.ImportFrom):
                name = _module_of(each, package)
                yield from (f"{name}.{alias.name}" for alias in each.names)
                yield name


def _module_of(imported: ast.ImportFrom, package: str) -> str:
    """The module from which a module of a package imports."""
    return importlib.util.resolve_name("." * imported.level + (imported.module or ""), package)


def source_of(function: FunctionType, named: Named | None = None) -> str:
    """The syntax trees at the function's place; without its own name."""
    return "; ".join(shape(node, named) for node in _nodes_of(function)) or "unknown"


def _nodes_of(function: FunctionType) -> list[ast.AST]:
    """The syntax trees at the function's place; of lambdas all that begin in its line."""
    code = function.__code__
    return [
        node
        for node in _nodes(file_of(function))
        if not isinstance(node, ast.ClassDef)
        and _begins(node) == code.co_firstlineno
        and getattr(node, "name", "<lambda>") == code.co_name
    ]


def file_of(value: Any) -> str:
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
