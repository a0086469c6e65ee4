"""`rivermark reset`: a stream starts over, with a new checkpoint and empty tables."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermark.cli.console import out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.run import new_run_id
from rivermark.model.stream import Ingest


def reset(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="The stream to start over.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    with_tables: Annotated[
        bool,
        typer.Option("--with-tables", help="For a stream that reads files: read them all again."),
    ] = False,
    home: Home = None,
) -> None:
    """Start a stream over: new checkpoint, and its tables filled again from its inputs.

    All streams that read it start over too. The former tables are moved to `removed/` in the lake.

    Examples:
        rivermark reset taxi/driver_tips
        rivermark reset taxi/ride_events --with-tables --yes
    """
    # Here, because `rivermark --help` needs nothing of the runtime.
    from rivermark.runtime.supervision.reset import reset as start_over
    from rivermark.runtime.supervision.reset import resets_with

    settings, declared = settings_for(home), topology()
    chosen = declared.named(stream)
    names = [s.name for s in resets_with(declared, chosen)]
    if not (isinstance(chosen, Ingest) and not with_tables):
        out().print(plain(f"{', '.join(names)}: new checkpoints, tables put aside"))
        if not yes:
            typer.confirm("Start these streams over?", abort=True)
    report = start_over(settings, declared, chosen, run_id=new_run_id(), with_tables=with_tables)
    for place in report.removed:
        out().print(plain(f"put aside: {place}"))
    out().print(plain(f"fill the tables again with: rivermark run {' '.join(names)}"))
