"""`rivermark manifest`: the state of streams as a file, to compare new code with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from rivermark.cli.arguments import Groups, Home, Json, Streams
from rivermark.cli.console import err, out, plain, print_json
from rivermark.cli.deployment import selected, settings_for, topology


def manifest(
    streams: Streams = None,
    group: Groups = None,
    output: Annotated[Path | None, typer.Option(metavar="F", help="Write it to this file.")] = None,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Export the state of streams, so that `rivermark check --against F` can refuse what ends it.

    What made the state, its shape, positions in the inputs, and the columns of tables; no rows, but
    the values of parameters. The streams may be running. Streams that never ran are left out.

    JSON:
        at, release, streams (by name, each as `rivermark savepoint describe`); with --output:
        output, streams (names)

    Examples:
        rivermark manifest --output manifest.json
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.runtime.savepoint.guard import deployment_of

    settings = settings_for(home)
    chosen = selected(topology(), streams or (), group or ())
    with err().status("Reading checkpoints and tables"):
        made = deployment_of(settings, chosen)
    text = msgspec.json.format(msgspec.json.encode(made), indent=1) + b"\n"
    if output is None:
        sys.stdout.write(text.decode())
        return
    output.write_bytes(text)
    if as_json:
        print_json({"output": str(output), "streams": [*made.streams]})
        return
    left_out = len(chosen) - len(made.streams)
    never = f"; {left_out} never ran" if left_out else ""
    out().print(plain(f"{output}: the state of {len(made.streams)} streams{never}"))
