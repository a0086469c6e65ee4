"""The code of a process function, as facts that are the same in every Python process.

Stored state fits a schema by its shape. Whether it also means what the class means by it, only the
class's code says: with minimum and maximum swapped the shapes are the same. So a checkpoint keeps
the source of the class, of its bases, and of the functions, classes and constants of the same
module that they name, without comments, docstrings and layout. What other modules do is not seen:
who changes that raises the class's `version`.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import msgspec

SAID_OTHERWISE: Final = frozenset(
    {"declaration", "version", "migrations", "forgets", "dead_letter", "order", "hold"}
)
"""Attributes of a class that its schema says already, or that change no meaning of its state."""
LIBRARIES: Final = (Path(__file__).parents[2], Path(sysconfig.get_path("stdlib")))
SHORT: Final = 60
"""Characters up to which a text is kept as it is, for people."""
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def meaning_of(cls: type, made_by: object) -> dict[str, str]:
    """The code of a process's class, and the parameters with which it is made."""
    facts: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        facts |= _code_of(owner)
    if made_by is not cls:
        facts["parameters"] = _text(made_by)
    return facts


def meaning_of_function(function: Any) -> dict[str, str]:
    """The code of a function, such as one that prepares an input, and what it closes over."""
    inner = inspect.unwrap(getattr(function, "func", function))
    return _code_of(inner) | {"is": _text(function)}


def _code_of(defined: Any) -> dict[str, str]:
    """The source of a class or function, and of what it names in its module, by name."""
    file = _file_of(defined)
    if file is None or _is_library(file):
        return {}
    tops = _definitions(file)
    first = tops.get(defined.__qualname__)
    if first is None:
        return {f"code of {defined.__qualname__}": _digest(_nested(defined))}
    facts: dict[str, str] = {}
    module = sys.modules.get(defined.__module__)
    waiting, scope = (
        [defined.__qualname__],
        getattr(defined, "__globals__", vars(module) if module else {}),
    )
    while waiting:
        name = waiting.pop()
        node = tops.pop(name, None)
        if node is None:
            continue
        facts |= _facts(name, node, is_record=_is_record(scope.get(name)))
        waiting += sorted({each.id for each in ast.walk(node) if isinstance(each, ast.Name)})
    return facts


def _facts(name: str, node: ast.stmt, *, is_record: bool) -> dict[str, str]:
    """The facts of a definition: a class by its methods, so that a refusal can name the one."""
    plain = _plain(node, is_record=is_record)
    if isinstance(plain, ast.ClassDef):
        methods = [each for each in plain.body if isinstance(each, ast.FunctionDef)]
        others = [each for each in plain.body if each not in methods]
        plain.body = others or [ast.Pass()]
        facts = {f"code of {name}.{each.name}": _digest(ast.unparse(each)) for each in methods}
        return facts | {f"code of {name}": _digest(ast.unparse(plain))}
    text = ast.unparse(plain)
    if isinstance(plain, Definition):
        return {f"code of {name}": _digest(text)}
    return {f"constant {name}": text if len(text) <= SHORT else _digest(text)}


def _file_of(defined: Any) -> str | None:
    """The file of the source of a class or function; None of what was typed or is built in."""
    code = getattr(defined, "__code__", None)
    if code is not None:
        return str(code.co_filename)
    file = getattr(sys.modules.get(defined.__module__), "__file__", None)
    return None if file is None else str(file)


def _definitions(file: str) -> dict[str, ast.stmt]:
    """The definitions at a module's top by name; none where it has no source."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return {}
    defined: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, Definition):
            defined[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            defined |= {each.id: node for each in targets if isinstance(each, ast.Name)}
    return defined


def _nested(defined: Any) -> str:
    """The source of what is defined within a function, or a lambda by its line."""
    code = getattr(defined, "__code__", None)
    try:
        lines, _ = inspect.findsource(defined)
    except (OSError, TypeError):
        return repr((code.co_names, code.co_consts)) if code else defined.__qualname__
    kinds = (ast.Lambda,) if defined.__name__ == "<lambda>" else (Definition,)
    nodes = [
        node
        for node in ast.walk(ast.parse("".join(lines)))
        if isinstance(node, kinds)
        and (
            node.lineno == code.co_firstlineno
            if code is not None and isinstance(node, ast.Lambda)
            else getattr(node, "name", "") == defined.__name__
        )
    ]
    return "\n".join(ast.unparse(_plain(node, is_record=False)) for node in nodes)


def _plain(node: ast.AST, *, is_record: bool) -> ast.AST:
    """A definition without docstrings, what a schema says already, and fields of a record."""
    copied = ast.parse(ast.unparse(node)).body[0]
    for each in ast.walk(copied):
        if isinstance(each, Definition):
            body = [line for line in each.body if not _is_docstring(line)]
            if isinstance(each, ast.ClassDef):
                body = [line for line in body if not _is_said(line, is_record=is_record)]
            each.body = body or [ast.Pass()]
    return copied


def _is_docstring(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _is_said(line: ast.stmt, *, is_record: bool) -> bool:
    if isinstance(line, ast.AnnAssign) and (is_record or line.value is None):
        return True
    targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
    return any(isinstance(each, ast.Name) and each.id in SAID_OTHERWISE for each in targets)


def _text(value: object) -> str:
    """A value as text without ids, paths or an order that differs between processes."""
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, Mapping):
        pairs = sorted((_text(key), _text(each)) for key, each in value.items())
        return "{" + ", ".join(f"{key}: {each}" for key, each in pairs) + "}"
    if isinstance(value, list | tuple | set | frozenset):
        texts = [_text(each) for each in value]
        return f"[{', '.join(texts if isinstance(value, list | tuple) else sorted(texts))}]"
    if isinstance(value, partial):
        named = (f"{name}={_text(each)}" for name, each in sorted(value.keywords.items()))
        return f"{_text(value.func)}({', '.join([*map(_text, value.args), *named])})"
    if isinstance(value, FunctionType):
        return value.__qualname__ + "".join(f", {name} {each}" for name, each in _closed(value))
    if isinstance(value, type):
        return value.__qualname__
    if isinstance(value, msgspec.Struct):
        held = {name: getattr(value, name) for name in value.__struct_fields__}
    elif is_dataclass(value):
        held = {each.name: getattr(value, each.name) for each in fields(value)}
    else:
        text = repr(value)
        # The default repr of an object has its address.
        return type(value).__qualname__ if " at 0x" in text else text
    return f"{type(value).__qualname__}({_text(held)})"


def _closed(function: FunctionType) -> Iterator[tuple[str, str]]:
    """The values that a function closes over, and its defaults."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    for name, cell in cells:
        try:
            yield name, _text(cell.cell_contents)
        except ValueError:
            continue  # Not set yet.
    if function.__defaults__ or function.__kwdefaults__:
        yield "defaults", _text([function.__defaults__, function.__kwdefaults__])


def _is_record(defined: object) -> bool:
    """Returns True if a class is one of fields, whose shape the schema has."""
    return isinstance(defined, type) and (
        issubclass(defined, msgspec.Struct) or is_dataclass(defined)
    )


@cache
def _is_library(file: str) -> bool:
    """Returns True if a module is of this library, Python's, or of a package that was installed."""
    path = Path(file)
    return "site-packages" in path.parts or any(path.is_relative_to(each) for each in LIBRARIES)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
