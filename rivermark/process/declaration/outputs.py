"""Finds the outputs that a process's class declares, and tags that nobody declared."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import CodeType
from typing import Any

from rivermark.model.errors import DeclarationError
from rivermark.process.api.side_outputs import SideOutput, SideSpec
from rivermark.process.evolution.storable import Storable


def find_sides(cls: type) -> dict[str, SideSpec]:
    """The side outputs of `cls` by tag."""
    found: dict[str, SideSpec] = {}
    names: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        for name, value in owner.__dict__.items():
            if not isinstance(value, SideOutput):
                continue
            if names.get(value.tag, name) != name:
                raise DeclarationError(
                    f"process '{cls.__name__}': '{names[value.tag]}' and '{name}' have one tag, "
                    f"{value.tag!r}: their rows could not be told apart"
                )
            names[value.tag] = name
            what = f"process '{cls.__name__}': side output '{value.tag}'"
            found[value.tag] = SideSpec(value, Storable(value.row, what))
    _refuse_unknown_tags(cls, found)
    return found


def find_out(cls: type, out: Any) -> Storable | None:
    """Type of the rows of the main output; None for a process that has only side outputs."""
    return None if out is None else Storable(out, f"process '{cls.__name__}': its output")


def _refuse_unknown_tags(cls: type, declared: dict[str, SideSpec]) -> None:
    for method, function in inspect.getmembers(cls, inspect.isfunction):
        for tag, line in _literal_tags(function.__code__):
            if tag not in declared:
                raise DeclarationError(
                    f"process '{cls.__name__}': {method} writes to side output {tag!r} in line "
                    f"{line}, which is not declared; declared: {', '.join(declared) or 'none'}"
                )


def _literal_tags(code: CodeType) -> Iterator[tuple[str, int]]:
    """Texts that stand as the first argument of a call of `.output(...)`, with their lines."""
    line = code.co_firstlineno
    for instruction, following in pairwise(dis.get_instructions(code)):
        line = instruction.starts_line or line
        calls = _loads_method(instruction) and instruction.argval == "output"
        if calls and following.opname == "LOAD_CONST" and isinstance(following.argval, str):
            yield following.argval, line
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _literal_tags(constant)


def _loads_method(instruction: dis.Instruction) -> bool:
    if sys.version_info >= (3, 12):
        # One instruction loads attributes and methods; its lowest bit says which.
        return instruction.opname == "LOAD_ATTR" and bool((instruction.arg or 0) & 1)
    return instruction.opname == "LOAD_METHOD"
