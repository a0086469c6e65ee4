"""`rivermark pause` and `rivermark resume`: what a person wants of a group of streams."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from rivermark.cli.console import out, plain
from rivermark.cli.deployment import Home, members, settings_for, topology
from rivermark.runtime.supervision.desired_state import DesiredState, DesiredStore

Group = Annotated[
    str, typer.Argument(metavar="GROUP", help="A group, as `rivermark status` shows.")
]
Reason = Annotated[str, typer.Option(metavar="TEXT", help="Recorded for colleagues.")]


def pause(group: Group, reason: Reason = "paused from a console", home: Home = None) -> None:
    """Say that a group should rest: its streams stop between batches and are not restarted.

    Examples:
        rivermark pause taxi_events --reason "moving the landing folder"
    """
    write_desired(group, "paused", reason, home)
    out().print(
        plain(
            f"group '{group}' should rest. Its run ends within a minute and stays ended until: "
            f"rivermark resume {group}"
        )
    )


def resume(group: Group, reason: Reason = "resumed from a console", home: Home = None) -> None:
    """Say that a group should run: the restart sensor of a running Dagster starts it.

    Examples:
        rivermark resume taxi_events
    """
    write_desired(group, "run", reason, home)
    out().print(
        plain(
            f"group '{group}' should run. The restart sensor starts it where Dagster runs "
            f"(make ui); without Dagster: rivermark run --group {group} --continuous"
        )
    )


def write_desired(group: str, state: DesiredState, reason: str, home: Home) -> None:
    """Write the desired state of a group; `UnknownStream` lists the groups."""
    members(topology(), group)
    DesiredStore(settings_for(home).state).set(group, state, by=getpass.getuser(), reason=reason)
