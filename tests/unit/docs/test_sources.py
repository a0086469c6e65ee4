"""What the pages about sources declare can be declared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rivermark import Source

PAGES = Path(__file__).parents[3] / "docs" / "sources"


@pytest.mark.parametrize("page", ["files", "delta", "python", "generators"])
def test_the_examples_of_a_page_are_declarations(page: str) -> None:
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", (PAGES / f"{page}.md").read_text(), re.DOTALL):
        exec(block, names)  # noqa: S102 - a page of this repository

    declared = [value for value in names.values() if isinstance(value, Source)]
    assert declared
    assert all(source.name and source.asset and source.description for source in declared)
