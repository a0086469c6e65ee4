"""The console command `rivermark`: a table of contents."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Final

import typer

from rivermark.cli.dashboard import dashboard
from rivermark.cli.dead_letters import dead_letters
from rivermark.cli.demo import demo
from rivermark.cli.desired_state import pause, resume
from rivermark.cli.files import files
from rivermark.cli.group import CommandGroup, add_command
from rivermark.cli.maintenance import upkeep
from rivermark.cli.merge_late import merge_late
from rivermark.cli.replay_ingest import replay_ingest
from rivermark.cli.reprocess import reprocess
from rivermark.cli.reset import reset
from rivermark.cli.run import run
from rivermark.cli.show import show
from rivermark.cli.state import state
from rivermark.cli.status import status

app: Final = typer.Typer(
    cls=CommandGroup,
    help="Streams in event time as living tables: run them, look at them, compute them again.",
    epilog="Begin with: rivermark demo",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


def print_version(wanted: bool) -> None:
    """Print the version and end."""
    if wanted:
        typer.echo(f"rivermark {version('rivermark')}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Take the options that stand before a command."""


BEGIN: Final = "Begin"
LOOK: Final = "Look (no engine is started)"
WORK: Final = "Run"
MEND: Final = "Mend"

add_command(app, demo, "demo", panel=BEGIN)
add_command(app, run, "run", panel=WORK)
add_command(app, pause, "pause", panel=WORK)
add_command(app, resume, "resume", panel=WORK)
add_command(app, status, "status", panel=LOOK)
add_command(app, show, "show", panel=LOOK)
add_command(app, files, "files", panel=LOOK)
add_command(app, dashboard, "dashboard", panel=LOOK)
app.add_typer(state, name="state", rich_help_panel=WORK)
app.add_typer(dead_letters, name="dead-letters", rich_help_panel=MEND)
add_command(app, reprocess, "reprocess", panel=MEND)
add_command(app, merge_late, "fold-late", panel=MEND)
add_command(app, replay_ingest, "readmit", panel=MEND)
add_command(app, reset, "reset", panel=MEND)
add_command(app, upkeep, "upkeep", panel=MEND)
