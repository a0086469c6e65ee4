"""What the page about lookups declares can be declared."""

import re
from datetime import date
from pathlib import Path
from typing import Any

import rivermark
from rivermark import sources

PAGE = Path(__file__).parents[3] / "docs" / "concepts" / "lookups.md"


def test_the_lookup_of_the_page_is_one() -> None:
    names: dict[str, Any] = {
        name: getattr(module, name) for module in (rivermark, sources) for name in module.__all__
    }
    names["SHOP"] = rivermark.Domain("shop", first_day=date(2024, 1, 1))
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(block, names)  # noqa: S102 - a page of this repository

    tables = [table.name for table in names["STORES"].tables]
    assert tables == [
        "shop/stores",
        "shop/stores_raw",
        "shop/stores_late",
        "shop/stores_quarantine",
        "shop/stores_versions",
    ]
    assert callable(names["with_region"])
