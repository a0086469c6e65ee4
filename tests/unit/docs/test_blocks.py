"""Every block of Python on a page is Python, and imports what is there."""

from __future__ import annotations

import ast
import importlib.util
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rivermark import Field, Rule, readers

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^( *)```python[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
PAGES = [
    page
    for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
    if "decisions" not in page.parts and BLOCK.search(page.read_text())
]
OURS = ("rivermark", "assets", "simulator")
OF_THE_PAGE = {"assets.bikes", "assets.shop", "simulator.bikes"}
"""Modules that a page writes."""


def blocks(page: Path) -> Iterator[str]:
    """The code of the page's blocks."""
    return (textwrap.dedent(code) for _, code in BLOCK.findall(page.read_text()))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_are_python_whose_imports_exist(page: Path) -> None:
    missing = [
        f"{module}.{name}"
        for code in blocks(page)
        for module, names in imports_of(ast.parse(code))
        for name in names
        if not exists(module, name)
    ]

    assert missing == []


def imports_of(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Modules of this repository that code imports, with the names from each."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            imported = [(node.module, [alias.name for alias in node.names])]
        elif isinstance(node, ast.Import):
            imported = [(alias.name, [""]) for alias in node.names]
        else:
            continue
        for module, names in imported:
            written = any(module.startswith(each) for each in OF_THE_PAGE)
            if module.split(".")[0] in OURS and not written:
                yield module, names


def exists(module: str, name: str) -> bool:
    """Whether a module has the name, as an attribute or as a module below it."""
    imported = importlib.import_module(module)
    if not name or hasattr(imported, name):
        return True
    return importlib.util.find_spec(f"{module}.{name}") is not None


def test_the_readers_and_rules_of_the_page_on_values_can_be_declared() -> None:
    names: dict[str, Any] = {"Field": Field, "Rule": Rule, "readers": readers}
    statements = [
        statement
        for code in blocks(DOCS / "concepts/values.md")
        for statement in ast.parse(code).body
    ]
    declared = [
        eval(ast.unparse(statement), names)  # noqa: S307 - a page of this repository
        for statement in statements
    ]

    assert {type(each) for each in declared} == {Field, Rule}
    assert len(declared) == 4
