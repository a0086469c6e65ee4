"""The page with the rows that break rules of a table: what a failed check links to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from rivermark.lake.filesystem import write_file
from rivermark.model.table import Table
from rivermark.monitor.dashboard.formatting import render
from rivermark.quality.failing_rows import Evidence
from rivermark.settings import Settings

PAGES: Final = "pages"


def page_path(settings: Settings, table: Table) -> Path:
    """The path of a table's page; the file exists while rules are broken."""
    return settings.home / PAGES / "bad_rows" / f"{table.name.replace('/', '.')}.html"


def failing_pages(settings: Settings, tables: Iterable[Table]) -> dict[str, str]:
    """The pages that exist, by table, each as a path from the folder of pages."""
    paths = {table.name: page_path(settings, table) for table in tables}
    pages = settings.home / PAGES
    return {n: path.relative_to(pages).as_posix() for n, path in paths.items() if path.is_file()}


def write(evidence: Evidence, path: Path) -> Path:
    """Draw the page into a file."""
    write_file(str(path), draw(evidence).encode(), durable=False)
    return path


def draw(evidence: Evidence) -> str:
    """The page as HTML."""
    return render("failing_rows.html", evidence=evidence)
