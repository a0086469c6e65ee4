"""The page with the rows that break rules of a table: what a failed check links to."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from rivermark.html.document import document
from rivermark.html.markup import Markup, table, tag
from rivermark.lake.filesystem import write_file
from rivermark.model.table import Table
from rivermark.quality.duckdb_evaluator import FailingRows
from rivermark.quality.failing_rows import Evidence
from rivermark.settings import Settings

LONGEST = 120
"""Characters of a value that are shown."""


def page_path(settings: Settings, of: Table) -> Path:
    """Where the page of a table lies; there is none while no rule is broken."""
    return settings.home / "pages" / "bad_rows" / f"{of.name.replace('/', '.')}.html"


def write(evidence: Evidence, path: Path) -> Path:
    """Draw the page into a file."""
    write_file(str(path), draw(evidence).encode())
    return path


def draw(evidence: Evidence) -> str:
    """The page as HTML."""
    told = f"{evidence.table} at version {evidence.version}"
    hidden = (
        tag("p", f"Left out as personal: {', '.join(evidence.hidden)}.", class_="dim")
        if evidence.hidden
        else None
    )
    top = tag(
        "header",
        tag("h1", f"Rows that break rules: {evidence.table}"),
        tag("p", f"Of {told}. Times are UTC.", class_="dim"),
        hidden,
        tag("p", "On the console: ", tag("code", evidence.command)),
    )
    return document(
        f"rivermark: {told}",
        top,
        tag("main", (_section(n, found, evidence) for n, found in enumerate(evidence.failing))),
    )


def _section(number: int, found: FailingRows, evidence: Evidence) -> Markup:
    days = evidence.by_day.get(found.rule, {})
    shown = f"{len(found.rows):,} of {found.count:,} that break: {found.rule}"
    return tag(
        "section",
        tag("h2", f"{found.rule}: {found.count:,}", id=f"rule-{number}"),
        table(
            f"By day: {found.rule}",
            ("day", "rows"),
            ((day.isoformat(), f"{n:,}") for day, n in sorted(days.items(), reverse=True)),
            numeric=("rows",),
        )
        if days
        else None,
        table(shown, found.columns, (map(_cell, row) for row in found.rows)),
        aria_labelledby=f"rule-{number}",
    )


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
