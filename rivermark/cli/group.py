"""The top of the console: its own commands, those of the domains, and errors in a sentence."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

import typer
from typer.core import TyperGroup

from rivermark.cli.console import err, plain
from rivermark.model.errors import RivermarkError

COMMANDS: Final = "rivermark.commands"
"""Entry points of this group are commands: the name is the command, the object its function."""

DOMAIN_PANEL: Final = "Commands of the domains"


class CommandGroup(TyperGroup):
    """Finds the domains' commands where packages declare them; imports one when it is needed.

    A RivermarkError is printed as one sentence, with exit code 1 and no traceback.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Own commands in their order, then the domains'."""
        own = super().list_commands(ctx)
        return [*own, *sorted(set(domain_commands()) - set(own))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """An own command, or the domain's of that name."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        entry = domain_commands().get(cmd_name)
        return None if entry is None else load_command(entry)

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except RivermarkError as error:
            err().print(plain(f"rivermark: {error}", "red"), soft_wrap=True)
            raise typer.Exit(1) from error


def add_command(
    app: typer.Typer,
    function: Callable[..., None],
    name: str,
    *,
    panel: str | None = None,
    former_name: str | None = None,
) -> None:
    """Add a function as a command: its docstring is the help, its `Examples:` stand below.

    A command that was renamed also runs under its former name, which help does not list.
    """
    text = inspect.cleandoc(function.__doc__ or "")
    described, _, examples = text.partition("\n\nExamples:\n")
    # Lines end where the terminal does, not where the source does.
    help_text = "\n\n".join(" ".join(part.split()) for part in described.split("\n\n"))
    lines = [line.strip() for line in examples.splitlines() if line.strip()]
    epilog = "\n\n".join(["Examples:", *lines]) if lines else None
    app.command(name=name, help=help_text, epilog=epilog, rich_help_panel=panel)(function)
    if former_name is not None:
        app.command(name=former_name, help=help_text, epilog=epilog, hidden=True)(function)


def domain_commands() -> dict[str, EntryPoint]:
    """The declared commands by name."""
    return {entry.name: entry for entry in entry_points(group=COMMANDS)}


def load_command(entry: EntryPoint) -> Any:
    """Import a domain's command. Raises RivermarkError with the package that cannot be imported."""
    try:
        function: Callable[..., None] = entry.load()
    except Exception as error:
        raise RivermarkError(
            f"command '{entry.name}' cannot be imported from {entry.value}: {error}"
        ) from error
    app = typer.Typer(add_completion=False)
    add_command(app, function, entry.name, panel=DOMAIN_PANEL)
    return typer.main.get_command(app)
