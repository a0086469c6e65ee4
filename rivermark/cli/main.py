"""The console command `rivermark`: all of its commands."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated, Final

import typer

from rivermark.cli.group import CommandGroup, Declared

START: Final = "Getting started"
INSPECT: Final = "Inspect (no Spark)"
RUN: Final = "Run"
REPAIR: Final = "Repair"


class Commands(CommandGroup):
    """The commands in the order of the help."""

    declared = (
        Declared("setup", "rivermark.cli.setup:setup", START),
        Declared("new", "rivermark.cli.new:new", START),
        Declared("demo", "rivermark.cli.demo:demo", START),
        Declared("check", "rivermark.cli.check:check", START),
        Declared("run", "rivermark.cli.run:run", RUN),
        Declared("pause", "rivermark.cli.desired_state:pause", RUN),
        Declared("resume", "rivermark.cli.desired_state:resume", RUN),
        Declared("status", "rivermark.cli.status:status", INSPECT),
        Declared("show", "rivermark.cli.show:show", INSPECT),
        Declared("sql", "rivermark.cli.sql:sql", INSPECT),
        Declared("files", "rivermark.cli.files:files", INSPECT),
        Declared("checks", "rivermark.cli.checks:checks", INSPECT),
        Declared("expectations", "rivermark.cli.expectations:expectations", INSPECT),
        Declared("dashboard", "rivermark.cli.dashboard:dashboard", INSPECT),
        Declared("metrics", "rivermark.cli.metrics:metrics", INSPECT),
        Declared("notify", "rivermark.cli.notify:notify", INSPECT),
        Declared("manifest", "rivermark.cli.manifest:manifest", INSPECT),
        Declared("state", "rivermark.cli.state:state", RUN),
        Declared("dead-letters", "rivermark.cli.dead_letters:dead_letters", REPAIR),
        Declared("reprocess", "rivermark.cli.reprocess:reprocess", REPAIR),
        Declared("merge-late", "rivermark.cli.merge_late:merge_late", REPAIR),
        Declared("replay-ingest", "rivermark.cli.replay_ingest:replay_ingest", REPAIR),
        Declared("retake", "rivermark.cli.retake:retake", REPAIR),
        Declared("upgrade", "rivermark.cli.upgrade:upgrade", RUN),
        Declared("rescale", "rivermark.cli.rescale:rescale", RUN),
        Declared("savepoint", "rivermark.cli.savepoint:savepoint", RUN),
        Declared("fork", "rivermark.cli.fork:fork", RUN),
        Declared("reset", "rivermark.cli.reset:reset", REPAIR),
        Declared("erase", "rivermark.cli.erase:erase", REPAIR),
        Declared("accept", "rivermark.cli.accept:accept", REPAIR),
        Declared("accept-loss", "rivermark.cli.accept_loss:accept_loss", REPAIR),
        Declared("upkeep", "rivermark.cli.maintenance:upkeep", REPAIR),
        Declared("fsck", "rivermark.cli.fsck:fsck", REPAIR),
        Declared("verify", "rivermark.cli.verify:verify", REPAIR),
    )


app: Final = typer.Typer(
    cls=Commands,
    help="Streams in event time as living tables: run, inspect and repair them.",
    epilog="Start with: rivermark demo, then rivermark status and rivermark dashboard. "
    "Exit codes: 0 done, 1 a fault, 2 wrong use, 3 warnings alone, 130 interrupted.",
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
