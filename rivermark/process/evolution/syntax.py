"""Code as text by its syntax tree, the same in every version of Python.

Comments and layout are in no tree; docstrings, annotations and the names of local variables are
left out. So two functions have one text where they compute the same in the same steps.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from itertools import chain
from typing import Final

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

Named = Callable[[str], str | None]
"""What stands for a dotted name of a module in its place; None for the name itself."""


def shape(node: object, named: Named | None = None) -> str:
    """A syntax tree as text, the same in every version of Python and for all names of variables.

    `named` says what stands for names of the module around it; a function's own name is left out.
    """
    bound, arguments = _bound_in(node)
    if not isinstance(node, FUNCTIONS):
        return _Writer(frozenset(), bound | arguments, named).text(node)
    return _Writer(bound - arguments, bound | arguments, named).text(node, without=("name",))


def _bound_in(top: object) -> tuple[frozenset[str], frozenset[str]]:
    """The variables of functions and expressions that no module has; then their arguments alone.

    A caller may name an argument; nothing outside can name the others.
    """
    bound: set[str] = set()
    shared: set[str] = set()
    arguments: set[str] = set()
    nodes = top if isinstance(top, list) else [top]
    for node in chain.from_iterable(map(ast.walk, nodes)):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                bound.add(name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                shared.update(names)
            case ast.arg(arg=name):
                arguments.add(name)
            case _ if type(node) in CAPTURES and node is not top:
                bound.add(getattr(node, CAPTURES[type(node)]))
    return frozenset(bound - shared), frozenset(arguments)


class _Writer:
    """Writes a syntax tree as text, with variables numbered in the order in which they occur."""

    def __init__(self, local: frozenset[str], bound: frozenset[str], named: Named | None) -> None:
        self._local = local
        self._bound = bound
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
            variable = dotted.partition(".")[0] in self._bound
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
