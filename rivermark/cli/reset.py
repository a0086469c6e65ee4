"""`rivermark reset`: a stream starts over, with a new checkpoint and empty tables."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json, Streams, Yes
from rivermark.cli.console import err, out, plain, print_json
from rivermark.cli.deployment import settings_for, suited, topology
from rivermark.cli.session import new_run_id
from rivermark.model.stream import AnyStream


def reset(
    streams: Streams = None,
    group: Groups = None,
    yes: Yes = False,
    with_tables: Annotated[
        bool,
        typer.Option("--with-tables", help="For a stream that reads files: read them all again."),
    ] = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Start streams over, with new checkpoints; their tables are filled again from their inputs.

    All streams that read them start over too. The former tables are moved to `removed/` in the
    lake.

    JSON:
        streams (names, in the order to run them), generations (by stream), removed (places)

    Examples:
        rivermark reset taxi/driver_tips --dry-run
        rivermark reset taxi/ride_events --with-tables --yes
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.runtime.supervision.reset import check_resettable, resets_with
    from rivermark.runtime.supervision.reset import reset as start_over

    settings, declared = settings_for(home), topology()
    chosen: list[AnyStream] = suited(declared, streams, group, lambda stream: stream)
    for stream in chosen:
        check_resettable(stream, with_tables=with_tables)
    chains = [[s.name for s in resets_with(declared, stream)] for stream in chosen]
    affected = {name for chain in chains for name in chain}
    names = [stream.name for stream in declared.streams if stream.name in affected]
    # Those that start over with another one need no order of their own.
    downstream = {name for chain in chains for name in chain[1:]}
    generations: dict[str, int] = {}
    removed: list[str] = []
    would = "would get " if dry_run else ""
    said = f"{', '.join(names)}: {would}new checkpoints, tables put aside"
    (err() if as_json else out()).print(plain(said))
    if not dry_run:
        if not yes:
            typer.confirm("Start these streams over?", abort=True, err=as_json)
        for stream in chosen:
            if stream.name in downstream:
                continue
            with err().status(f"Putting {stream.name} aside"):
                report = start_over(
                    settings, declared, stream, run_id=new_run_id(), with_tables=with_tables
                )
            generations |= report.generations
            removed += report.removed
    if as_json:
        print_json({"streams": names, "generations": generations, "removed": removed})
        return
    for place in removed:
        out().print(plain(f"put aside: {place}"))
    if not dry_run:
        out().print(plain(f"fill the tables again with: rivermark run {' '.join(names)}"))
