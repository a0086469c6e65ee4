"""The console command `rivermark`: all of its commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Final

import typer

from rivermark.cli.accept import accept
from rivermark.cli.dashboard import dashboard
from rivermark.cli.dead_letters import dead_letters
from rivermark.cli.demo import demo
from rivermark.cli.desired_state import pause, resume
from rivermark.cli.files import files
from rivermark.cli.fsck import fsck
from rivermark.cli.group import CommandGroup, add_command
from rivermark.cli.maintenance import upkeep
from rivermark.cli.merge_late import merge_late
from rivermark.cli.replay_ingest import replay_ingest
from rivermark.cli.reprocess import reprocess
from rivermark.cli.reset import reset
from rivermark.cli.retake import retake
from rivermark.cli.run import run
from rivermark.cli.show import show
from rivermark.cli.state import state
from rivermark.cli.status import status
from rivermark.cli.verify import verify

app: Final = typer.Typer(
    cls=CommandGroup,
    help="Streams in event time as living tables: run, inspect and repair them.",
    epilog="Start with: rivermark demo",
    no_args_is_help=True,
    pretty_exceptions_show_locals=False,
)


def print_version(wanted: bool) -> None:
    """Print the version and exit."""
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
    """Options that stand before a command."""


START: Final = "Getting started"
INSPECT: Final = "Inspect (no Spark)"
RUN: Final = "Run"
REPAIR: Final = "Repair"

add_command(app, demo, "demo", panel=START)
add_command(app, run, "run", panel=RUN)
add_command(app, pause, "pause", panel=RUN)
add_command(app, resume, "resume", panel=RUN)
add_command(app, status, "status", panel=INSPECT)
add_command(app, show, "show", panel=INSPECT)
add_command(app, files, "files", panel=INSPECT)
add_command(app, dashboard, "dashboard", panel=INSPECT)
app.add_typer(state, name="state", rich_help_panel=RUN)
app.add_typer(dead_letters, name="dead-letters", rich_help_panel=REPAIR)
add_command(app, reprocess, "reprocess", panel=REPAIR)
add_command(app, merge_late, "merge-late", panel=REPAIR, former_name="fold-late")
add_command(app, replay_ingest, "replay-ingest", panel=REPAIR, former_name="readmit")
add_command(app, retake, "retake", panel=REPAIR)
add_command(app, reset, "reset", panel=REPAIR)
add_command(app, accept, "accept", panel=REPAIR)
add_command(app, upkeep, "upkeep", panel=REPAIR)
add_command(app, fsck, "fsck", panel=REPAIR)
add_command(app, verify, "verify", panel=REPAIR)
