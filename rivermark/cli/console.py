"""Output of the console: numbers, moments, states and tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Column, Table
from rich.text import Text

from rivermark.model.printable import printable

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.status import Status

PIPE_WIDTH: Final = 250
"""A pipe has no width of its own; what goes into it is not cut to that of an old terminal."""

READABLE: Final = 24
"""Columns of text that are narrower than this, and than their content, are not worth a table."""

LONGEST: Final = 60
"""Longer values of rows are cut in tables, never in JSON."""

STYLES: Final = {
    **dict.fromkeys(("running", "idle", "run", "held", "complete", "read"), "green"),
    **dict.fromkeys(("silent", "paused", "waiting", "warn", "open", "not"), "yellow"),
    **dict.fromkeys(("dead", "failed", "error", "unreadable", "quarantined"), "red"),
    **dict.fromkeys(("stopped", "never", "arrived"), "dim"),
}
"""The colour of a state, by its first word."""


class PlainConsole(Console):
    """Prints texts as they are: no markup, and control characters escaped."""

    def render_str(self, text: str, **options: Any) -> Text:
        """The text, safe on a terminal."""
        return super().render_str(printable(text, lines=True), **options)

    def status(self, status: RenderableType, **options: Any) -> Status:
        """A line with a spinner, on a terminal only."""
        return super().status(plain(status) if isinstance(status, str) else status, **options)


def out() -> Console:
    """The console of answers."""
    return _console(stderr=False)


def err() -> Console:
    """The console of progress and errors, apart from answers, so that these can be piped."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    terminal = (sys.stderr if stderr else sys.stdout).isatty()
    width = None if terminal or "COLUMNS" in os.environ else PIPE_WIDTH
    return PlainConsole(stderr=stderr, width=width, highlight=False, markup=False, emoji=False)


class Grid(Table):
    """A table where there is room for it, else its rows one below the other."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        needed = [_needed(column) for column in self.columns]
        # With an edge on both sides, and a gap of two between columns.
        if sum(needed) + 2 * len(needed) + 2 > options.max_width:
            yield from self._one_below_the_other(options.max_width)
            return
        for column, width in zip(self.columns, needed, strict=True):
            column.min_width = width
        yield from super().__rich_console__(console, options)

    def _one_below_the_other(self, width: int) -> RenderResult:
        if self.title:
            yield Text(str(self.title), style="bold")
        for values in zip(*(column.cells for column in self.columns), strict=True):
            line, *others = [
                Text.assemble((f"{str(column.header).strip()} ", "dim"), text)
                for column, value in zip(self.columns, values, strict=True)
                if (text := _text(value)).plain
            ] or [Text("")]
            for pair in others:
                longer = Text.assemble(line, " · ", pair)
                if longer.cell_len > width:
                    yield line
                    longer = Text.assemble("  ", pair)
                line = longer
            yield line
        yield Text("")


def _needed(column: Column) -> int:
    """The width that a column needs: numbers whole, words whole, and some words side by side."""
    texts = [each.plain if isinstance(each, Text) else str(each) for each in column.cells]
    lines = [line for text in (str(column.header), *texts) for line in text.split("\n")]
    longest = max(map(cell_len, lines))
    if column.no_wrap:
        return longest
    words = (cell_len(word) for line in lines for word in line.split())
    return max(min(longest, READABLE), *words, 0)


def _text(value: RenderableType) -> Text:
    text = value if isinstance(value, Text) else plain(str(value))
    return Text(", ").join(text.split("\n"))


def grid(title: str | None, columns: Iterable[str], *, right: Iterable[str] = ()) -> Grid:
    """An empty table; columns in `right` hold numbers, which never break; texts may fold."""
    numeric = set(right)
    table = Grid(
        title=None if title is None else printable(title),
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )
    for name in columns:
        if name in numeric:
            table.add_column(printable(name), justify="right", no_wrap=True)
        else:
            table.add_column(printable(name), overflow="fold")
    return table


def plain(text: str, style: str = "") -> Text:
    """A text in which square brackets are square brackets, and escape sequences are visible."""
    return Text(printable(text, lines=True), style=style)


def coloured(text: str) -> Text:
    """The state of a stream, a file or a check, in its colour on a terminal."""
    return plain(text, STYLES.get(text.partition(" ")[0].rstrip(":;,"), ""))


def number(value: int | float | None) -> str:
    """A number with thousands marks; nothing for None."""
    if value is None:
        return ""
    return f"{value:,.0f}" if isinstance(value, int) or value == int(value) else f"{value:,.2f}"


def moment(value: datetime | None) -> str:
    """A moment in UTC, to the second."""
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") if value else ""


def ago(value: datetime | None, now: datetime) -> str:
    """The age of a moment in its largest unit; nothing for None."""
    if value is None:
        return ""
    seconds = max(0.0, (now - value).total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def cell(value: object) -> str:
    """A value of a row on one line: moments in UTC, lists by commas, long texts cut."""
    if value is None:
        return ""
    if isinstance(value, datetime):
        return moment(value)
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    text = printable(text)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def print_json(document: object) -> None:
    """One JSON document on standard output: the only thing there, also where it is empty."""
    text = json.dumps(as_json(document), indent=2, allow_nan=False)
    sys.stdout.write(text.replace("\x7f", "\\u007f") + "\n")


def as_json(value: object) -> Any:
    """A value as JSON takes it.

    Moments and days in ISO form (UTC), durations in seconds, decimals and numbers that JSON has not
    as text, bytes as hexadecimal digits, sets in their order.
    """
    match value:
        case None | bool() | int() | str() if not isinstance(value, Enum):
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case datetime():
            return (value.astimezone(UTC) if value.tzinfo else value).isoformat()
        case date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case bytes():
            return value.hex()
        case Enum():
            return as_json(value.value)
        case Mapping():
            return {str(as_json(name)): as_json(each) for name, each in value.items()}
        case list() | tuple():
            return [as_json(each) for each in value]
        case set() | frozenset():
            return sorted(map(as_json, value))
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: as_json(getattr(value, each.name)) for each in fields(value)}
    return str(value)
