"""What the how-to pages declare can be declared, and their index lists each of them."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest

PAGES = Path(__file__).parents[3] / "docs" / "how-to"


@pytest.mark.parametrize("page", ["add-a-field.md", "bring-a-suite.md", "read-a-delta-table.md"])
def test_the_examples_of_a_page_are_declarations(page: str) -> None:
    names: dict[str, Any] = {}
    blocks = re.findall(r"^( *)```python\n(.*?)^ *```", (PAGES / page).read_text(), re.M | re.S)
    for _, block in blocks:
        exec(textwrap.dedent(block), names)  # noqa: S102 - a page of this repository

    assert blocks


def test_the_index_lists_every_page() -> None:
    index = (PAGES / "index.md").read_text()

    assert [page.name for page in PAGES.glob("*.md") if f"({page.name}" not in index] == [
        "index.md"
    ]
