"""Links to the code that declares a stream, for the page of its asset."""

from __future__ import annotations

import ast
import inspect
import sys
import warnings
from functools import cache
from types import ModuleType

import dagster as dg

from rivermark.model.stream import AnyStream, Ingest, Stream


def code_references(stream: AnyStream) -> dict[str, dg.CodeReferencesMetadataValue]:
    """Metadata with the declaration's place, and that of the stream's `build`; empty if unknown."""
    places = [*_declaration(stream), *_build(stream)]
    if not places:
        return {}
    with warnings.catch_warnings():
        # Marked beta in 1.13, told at each load.
        warnings.simplefilter("ignore", dg.BetaWarning)
        return {
            "dagster/code_references": dg.CodeReferencesMetadataValue(
                code_references=[
                    dg.LocalFileCodeReference(file_path=path, line_number=line, label=label)
                    for path, line, label in places
                ]
            )
        }


def _declaration(stream: AnyStream) -> list[tuple[str, int, str]]:
    """The module and line that give the stream a name, if a module does."""
    for module, name in _named(sum(name.startswith("assets.") for name in sys.modules)):
        if vars(module).get(name) is stream and module.__file__:
            line = _lines(module).get(name)
            if line is not None:
                return [(module.__file__, line, "declaration")]
    return []


@cache
def _named(modules: int) -> list[tuple[ModuleType, str]]:
    """The names of streams in the modules of `assets`, of which there are so many by now."""
    return [
        (module, name)
        for path, module in sys.modules.items()
        if path.startswith("assets.")
        for name, value in vars(module).items()
        if isinstance(value, Stream | Ingest)
    ]


@cache
def _lines(module: ModuleType) -> dict[str, int]:
    """The lines that assign names in this very module; those only imported are not among them."""
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError):
        return {}
    lines: dict[str, int] = {}
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Name):
                lines.setdefault(target.id, node.lineno)
    return lines


def _build(stream: AnyStream) -> list[tuple[str, int, str]]:
    if not isinstance(stream, Stream):
        return []
    code = getattr(inspect.unwrap(stream.build), "__code__", None)
    return [(code.co_filename, code.co_firstlineno, "transformation")] if code else []
