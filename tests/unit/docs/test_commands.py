"""The commands that pages show can be typed: their options exist, for that command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from typer import Context
from typer.main import get_command

from rivermark.cli.group import LazyCommand
from rivermark.cli.main import app

ROOT = Path(__file__).parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
OF_THE_TOP = {"--help", "--version", "--install-completion", "--show-completion"}
SHOWN = re.compile(r"`rivermark ([a-z][^`]*)`|^ *rivermark ([a-z].*)$", re.MULTILINE)


@cache
def options_of(words: tuple[str, ...]) -> frozenset[str]:
    """Every option of a command, those of a subcommand where one is named."""
    root: Any = get_command(app)
    command = root.get_command(Context(root), words[0])
    if isinstance(command, LazyCommand):
        command = command.loaded()
    below = getattr(command, "commands", {})
    if below:
        named = [below[word] for word in words[1:2] if word in below] or below.values()
        return frozenset().union(*(_options(each) for each in named))
    return _options(command)


def _options(command: Any) -> frozenset[str]:
    return frozenset(
        spelling for each in command.params for spelling in (*each.opts, *each.secondary_opts)
    )


def shown_commands(page: Path) -> Iterator[str]:
    """What stands behind `rivermark` in code spans and in lines of code, without remarks."""
    for span, line in SHOWN.findall(page.read_text()):
        yield re.split(r"\s#|&&|\|\||;| \| ", span or line)[0]


def test_every_option_of_a_command_on_a_page_exists() -> None:
    unknown, checked = [], 0
    for page in PAGES:
        if page.name == "CHANGELOG.md" or "decisions" in page.parts:
            continue  # Of their day.
        for command in shown_commands(page):
            used = set(re.findall(r"(?<!\S)--[a-z][a-z-]*", command)) - OF_THE_TOP
            checked += len(used)
            if used - options_of(tuple(command.split()[:2])):
                unknown.append(f"{page.relative_to(ROOT)}: rivermark {command}")

    assert unknown == []
    assert checked > 60
