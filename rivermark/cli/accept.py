"""Saying that the stored state of a stream means what its changed declaration means by it."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermark.cli.console import out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.run import new_run_id


def accept(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="The stream that was changed.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    home: Home = None,
) -> None:
    """Let a stream go on with its stored state after its declaration has changed.

    For a change after which the state still means the same, such as code that was rewritten. The
    next start records what is declared then, and later ones compare with that. Where the meaning
    has changed, start over: rivermark reset.

    Examples:
        rivermark accept taxi/long_rides
    """
    # Here, because `rivermark --help` needs nothing of the runtime.
    from rivermark.runtime.supervision.reset import accept_state

    settings, chosen = settings_for(home), topology().named(stream)
    if not yes:
        typer.confirm(f"Does the state of {chosen.name} mean what is declared now?", abort=True)
    if accept_state(settings, chosen, run_id=new_run_id()):
        out().print(plain(f"{chosen.name}: its next start takes the state as that of what it runs"))
    else:
        out().print(plain(f"{chosen.name}: there is no record of what made its state"))
