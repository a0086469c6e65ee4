"""`rivermark accept-loss`: a stream goes on behind records that are gone from its source."""

from __future__ import annotations

from typing import Any

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json, Streams, Yes
from rivermark.cli.console import err, out, plain, print_json
from rivermark.cli.deployment import an_ingest, settings_for, suited, topology
from rivermark.cli.session import new_run_id
from rivermark.model.printable import printable
from rivermark.model.stream import AnyStream
from rivermark.sinks.real_time import real_time_of


def accept_loss(
    streams: Streams = None,
    group: Groups = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Let an ingest continue after records that its source lost before they were read.

    Each gap is recorded: among the ranges that `rivermark files` lists, and in the quarantine. A
    stream that sends in real time goes on behind the gaps of its ingest, and by itself behind
    messages that only it had not read.

    JSON:
        streams (stream, accepted, gaps (name, reason))

    Examples:
        rivermark accept-loss taxi/ride_events
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.runtime.supervision import reset

    settings, console = settings_for(home), err() if as_json else out()
    results: list[dict[str, Any]] = []
    for stream in suited(topology(), streams, group, _reads_a_source):
        with err().status(f"Asking the source of {stream.name}"):
            gaps = reset.lost_input(settings, stream)
        for gap in gaps:
            console.print(plain(f"gone: {printable(gap.name)} ({gap.reason})"))
        accepted = bool(gaps) and not dry_run
        if accepted:
            if not yes:
                typer.confirm("Go on without them?", abort=True, err=as_json)
            gaps = reset.accept_loss(settings, stream, run_id=new_run_id())
        listed = [{"name": gap.name, "reason": gap.reason} for gap in gaps]
        results.append({"stream": stream.name, "accepted": accepted, "gaps": listed})
        if not as_json:
            done = f"recorded; go on with: rivermark run {stream.name}"
            nothing = "nothing was changed" if gaps else "nothing is gone"
            out().print(plain(f"{stream.name}: {done if accepted else nothing}"))
    if as_json:
        print_json({"streams": results})


def _reads_a_source(stream: AnyStream) -> AnyStream:
    """The stream, if it reads a source, be it in real time alone; else WrongUse."""
    return stream if real_time_of(stream) is not None else an_ingest(stream)
