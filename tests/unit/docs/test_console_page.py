"""docs/operations/console.md says what the console says of itself.

Run as a script, it writes the part of the page that lists the commands:

    PYTHONPATH=. python tests/unit/docs/test_console_page.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer import Context
from typer.main import get_command
from typer.testing import CliRunner

from rivermark.cli.exit_codes import ExitCode
from rivermark.cli.group import DOMAIN_PANEL, LazyCommand
from rivermark.cli.main import REPAIR, RUN, app

PAGE = Path(__file__).parents[3] / "docs" / "operations" / "console.md"
STREAMS = ("[STREAM]...", "[STREAM]", "[STREAM] FILE...", "STREAM", "[TABLE]...", "[GROUP]...")
BEGIN = "<!-- The rest is written by tests/unit/docs/test_console_page.py, run as a script. -->\n"


def commands() -> Iterator[tuple[str, str, Any]]:
    """Each command with its panel and its name as it is typed, those of groups one by one."""
    root = get_command(app)
    context = Context(root, info_name="rivermark")
    for name in root.list_commands(context):  # type: ignore[attr-defined]
        lazy = root.get_command(context, name)  # type: ignore[attr-defined]
        assert isinstance(lazy, LazyCommand)
        if lazy.hidden:
            continue
        command = lazy.loaded()
        if not hasattr(command, "commands"):
            yield str(lazy.declared.panel), name, command
            continue
        for below, each in command.commands.items():
            yield str(lazy.declared.panel), f"{name} {below}", each


def reference() -> str:
    """The commands by panel, each with its arguments, options, fields and examples."""
    parts: dict[str, list[str]] = {}
    for panel, name, command in commands():
        parts.setdefault(panel, [f"## {panel}"]).append(section(name, command))
    return "\n\n".join(part for of_panel in parts.values() for part in of_panel) + "\n"


def section(name: str, command: Any) -> str:
    context = Context(command, info_name=name)
    shown = [each for each in command.params if not getattr(each, "hidden", False)]
    arguments = [each for each in shown if each.param_type_name == "argument"]
    words = [each.metavar or each.name.upper() for each in arguments]
    usage = " ".join(["rivermark", name, *words, "[OPTIONS]"])
    lines = [f"### rivermark {name}", "", f"    {usage}", "", command.help or "", ""]
    for each in shown:
        spelling, text = each.get_help_record(context) or ("", "")
        if each.name != "help":
            lines.append(f"- `{spelling}`: {text}".rstrip())
    for block in (command.epilog or "").split("\n\n"):
        if block.endswith(":"):
            lines += ["", block, ""]
        else:
            lines.append(f"    {block}")
    return "\n".join(lines)


def test_the_page_lists_the_commands_as_they_are() -> None:
    _, _, listed = PAGE.read_text().partition(BEGIN)

    assert listed.strip() == reference().strip(), "run this test's module as a script"


@pytest.mark.parametrize("name", [name for _, name, _ in commands()])
def test_every_option_of_the_help_is_on_the_page(name: str) -> None:
    result = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output

    options = set(re.findall(r"(?<![\w-])--[a-z-]+", result.output.split("Examples:")[0]))
    of_command = PAGE.read_text().split(f"### rivermark {name}\n")[1].split("\n##")[0]
    assert options - {"--help"} <= set(re.findall(r"--[a-z-]+", of_command))
    assert name in NO_LAKE or {"--home"} <= options


NO_LAKE = {"setup", "new project", "new stream"}
"""Commands for which it does not matter whose lake it is."""
ONLY_SHOW = {
    *("state show", "dead-letters list", "dead-letters show", "replay-ingest", "verify"),
    *("savepoint list", "savepoint describe", "savepoint verify", "fork list", "fork compare"),
}
"""Commands among those that run and repair which change nothing, or only tables of their own."""


def test_the_same_options_are_everywhere() -> None:
    for panel, name, command in commands():
        if panel == DOMAIN_PANEL:
            continue
        options = {spelling for each in command.params for spelling in each.opts}
        assert {"--json"} <= options, name
        assert name in NO_LAKE or "--home" in options, name
        assert "JSON:" in (command.epilog or ""), name
        changes = panel in (RUN, REPAIR) and name not in ONLY_SHOW
        assert ("--dry-run" in options) == changes, name
        takes_streams = any(each.metavar in STREAMS for each in command.params)
        of_one = any(each.metavar == "SAVEPOINT" for each in command.params)
        assert not takes_streams or of_one or "--group" in options, name


def test_every_exit_code_is_on_the_page() -> None:
    rows = re.findall(r"^\| (\d+) \|", PAGE.read_text(), re.MULTILINE)

    assert [int(code) for code in rows] == [code.value for code in ExitCode]


if __name__ == "__main__":
    before, _, _ = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{reference()}")
