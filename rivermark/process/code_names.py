"""What code looks up by name: attributes, globals and modules."""

from __future__ import annotations

from types import CodeType


def names_in(code: CodeType) -> set[str]:
    """Every name that the code, or code within it, looks up."""
    names = set(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            names |= names_in(inner)
    return names
