"""What the pages about sources declare can be declared."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rivermark.ingest.source.ranges import RangeReader
from rivermark.sources import Source

PAGES = Path(__file__).parents[3] / "docs" / "sources"


def names_of(page: str) -> dict[str, Any]:
    """What the examples of a page define."""
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", (PAGES / page).read_text(), re.DOTALL):
        exec(block, names)  # noqa: S102 - a page of this repository
    return names


@pytest.mark.parametrize("page", sorted(page.name for page in PAGES.glob("*.md")))
def test_the_examples_of_a_page_are_declarations(page: str) -> None:
    declared = [value for value in names_of(page).values() if isinstance(value, Source)]
    assert declared
    assert all(source.name and source.asset and source.description for source in declared)


def test_the_source_of_ones_own_plans_capped_ranges_and_reads_them(tmp_path: Path) -> None:
    path = str(tmp_path / "shop.db")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, at TEXT, total REAL)")
        rows = [(n, "2024-03-01T10:00:00Z", n / 2) for n in range(1, 20_002)]
        database.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
    reader = names_of("index.md")["Orders"](path).open("")
    assert isinstance(reader, RangeReader)
    splits = reader.discover().ready
    positions = [reader.position(split) for split in splits]

    assert [(p["start"], p["end"]) for p in positions] == [
        (0, 10_000),
        (10_000, 20_000),
        (20_000, 20_001),
    ]
    assert [split.size for split in splits] == [640_000, 640_000, 64]
    last = '{"id":20001,"at":"2024-03-01T10:00:00Z","total":10000.5}'
    assert reader.payloads(20_000, 20_001) == [last]
    reader.planned(splits)
    assert reader.discover().ready == []
