"""How the console writes: numbers, moments and tables, on a terminal or into a pipe."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

PIPE_WIDTH: Final = 250
"""A pipe has no width of its own; what goes into it is not cut to that of an old terminal."""


def out() -> Console:
    """Where answers go."""
    return Console(width=None if sys.stdout.isatty() else PIPE_WIDTH, highlight=False)


def err() -> Console:
    """Where progress and errors go, so that an answer can be piped."""
    width = None if sys.stderr.isatty() else PIPE_WIDTH
    return Console(stderr=True, width=width, highlight=False)


def grid(title: str | None, columns: Iterable[str], *, right: Iterable[str] = ()) -> Table:
    """An empty table; columns in `right` hold numbers, which never break; texts may fold."""
    numeric = set(right)
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    for name in columns:
        if name in numeric:
            table.add_column(name, justify="right", no_wrap=True)
        else:
            table.add_column(name, overflow="fold")
    return table


def number(value: int | float | None) -> str:
    """A number with thousands marks; nothing for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if isinstance(value, int) or value == int(value) else f"{value:,.2f}"


def moment(value: datetime | None) -> str:
    """A moment in UTC, to the second."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if value else ""


def ago(value: datetime | None, now: datetime) -> str:
    """How long ago a moment was, in its largest unit; nothing for None."""
    if value is None:
        return ""
    seconds = max(0.0, (now - value).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def plain(text: str, style: str = "") -> Text:
    """A text in which square brackets are square brackets."""
    return Text(text, style=style)
