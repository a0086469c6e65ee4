"""`rivermark rescale`: the state of a stream in another number of partitions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json, Streams, Yes
from rivermark.cli.console import number
from rivermark.cli.deployment import suited
from rivermark.cli.savepoint import order_of, say, steps
from rivermark.cli.session import engine

if TYPE_CHECKING:
    from rivermark.model.stream import AnyStream


def rescale(
    streams: Streams = None,
    group: Groups = None,
    partitions: Annotated[
        int, typer.Option(metavar="N", min=1, help="The number of partitions.")
    ] = 2,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Put the state of stopped streams into another number of partitions, with nothing lost.

    A savepoint is taken first. The entries of each state store and the sum of their hashes are
    compared before and after, and where they differ the stream is put back. The buckets of a
    process function stay as many as they were; more partitions share them.

    JSON:
        dry_run, streams (stream, savepoint, before, after, state: entries and sum of hashes by
        store; in a dry run: stream)

    Examples:
        rivermark rescale taxi/hourly_winners --partitions 8 --dry-run
        rivermark rescale taxi/hourly_winners --partitions 8 --yes
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.runtime.savepoint.rescale import check_rescalable
    from rivermark.runtime.savepoint.rescale import rescale as rescaled

    order = order_of(home)
    chosen: list[AnyStream] = suited(order.topology, streams, group, lambda stream: stream)
    for stream in chosen:
        check_rescalable(order.settings, stream, partitions)
    names = ", ".join(stream.name for stream in chosen)
    if dry_run:
        document = {"dry_run": True, "streams": [{"stream": each.name} for each in chosen]}
        say(f"{names}: would get {partitions} partitions", document, as_json=as_json)
        return
    if not yes:
        typer.confirm(f"Repartition the state of {names}?", abort=True, err=as_json)
    with engine(order.settings, "short") as spark, steps("Repartitioning") as on_step:
        one = replace(order, on_step=on_step)
        made = [rescaled(one, stream, spark, partitions) for stream in chosen]
    lines = [
        f"{each.stream}: {each.before} partitions before, {each.after} now, "
        f"{number(sum(entries for entries, _ in each.state.values()))} entries of state as before; "
        f"savepoint {each.savepoint}"
        for each in made
    ]
    say("\n".join(lines), {"dry_run": False, "streams": made}, as_json=as_json)
