"""`rivermark upgrade`: new code for streams that have state, tried, and taken back if it fails."""

from __future__ import annotations

import getpass
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json, Streams, Yes
from rivermark.cli.deployment import suited
from rivermark.cli.savepoint import order_of, say, steps
from rivermark.cli.session import engine

if TYPE_CHECKING:
    from rivermark.model.stream import AnyStream


def upgrade(
    streams: Streams = None,
    group: Groups = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Let streams go on with the code as it is declared now, or leave them as they were.

    The code is compared with the state before anything stops. Then the groups of the stream and of
    the streams that read its tables are paused, a savepoint is taken, and the new code drains what
    waits. If it fails, state and tables are those of the savepoint again, and the groups stay
    paused. Several streams are upgraded one after the other, until one fails.

    JSON:
        dry_run, streams (stream, savepoint, batches)

    Examples:
        rivermark upgrade taxi/driver_tips --dry-run
        rivermark upgrade taxi/driver_tips --yes
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.runtime.savepoint.upgrade import Upgraded
    from rivermark.runtime.savepoint.upgrade import upgrade as upgraded
    from rivermark.runtime.supervision.hosting import Hosting

    order = order_of(home, dry_run=dry_run)
    chosen: list[AnyStream] = suited(order.topology, streams, group, lambda stream: stream)
    names = ", ".join(stream.name for stream in chosen)
    if not (yes or dry_run):
        typer.confirm(f"Pause and upgrade {names}?", abort=True, err=as_json)
    hosting = Hosting(
        settings=order.settings,
        topology=order.topology,
        streams=chosen,
        run_id=order.run_id,
        continuous=False,
    )
    made: list[Upgraded] = []
    with engine(order.settings, hosting.session_kind()) as spark, steps("Upgrading") as on_step:
        for stream in chosen:
            one = replace(order, on_step=on_step)
            made.append(upgraded(one, stream, spark, by=getpass.getuser()))
    done = "could go on with this code" if dry_run else "goes on with this code"
    lines = [
        f"{each.stream} {done}"
        + (f": {each.batches} batches behind savepoint {each.savepoint}" if each.savepoint else "")
        for each in made
    ]
    say("\n".join(lines), {"dry_run": dry_run, "streams": made}, as_json=as_json)
