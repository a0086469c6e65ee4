"""`rivermark accept-loss`: an ingest goes on behind records that are gone from its source."""

from __future__ import annotations

from typing import Any

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json, Streams, Yes
from rivermark.cli.console import err, out, plain, print_json
from rivermark.cli.deployment import an_ingest, settings_for, suited, topology
from rivermark.cli.session import new_run_id
from rivermark.model.printable import printable


def accept_loss(
    streams: Streams = None,
    group: Groups = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Let an ingest go on behind records that were gone from its source before it read them.

    Each gap is recorded: among the ranges that `rivermark files` lists, and in the quarantine.

    JSON:
        streams (stream, accepted, gaps (name, reason))

    Examples:
        rivermark accept-loss taxi/ride_events
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.ingest.plan import lost_splits
    from rivermark.runtime.supervision.reset import accept_loss as plan_loss

    settings, console = settings_for(home), err() if as_json else out()
    results: list[dict[str, Any]] = []
    for ingest in suited(topology(), streams, group, an_ingest):
        gaps = lost_splits(settings.lake(), settings.landing_root, ingest)
        for gap in gaps:
            console.print(plain(f"gone: {printable(gap.name)} ({gap.reason})"))
        accepted = bool(gaps) and not dry_run
        if accepted:
            if not yes:
                typer.confirm("Go on without them?", abort=True, err=as_json)
            gaps = plan_loss(settings, ingest, run_id=new_run_id())
        listed = [{"name": gap.name, "reason": gap.reason} for gap in gaps]
        results.append({"stream": ingest.name, "accepted": accepted, "gaps": listed})
        if not as_json:
            done = f"recorded; go on with: rivermark run {ingest.name}"
            nothing = "nothing was changed" if gaps else "nothing is gone"
            out().print(plain(f"{ingest.name}: {done if accepted else nothing}"))
    if as_json:
        print_json({"streams": results})
