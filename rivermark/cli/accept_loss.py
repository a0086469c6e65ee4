"""`rivermark accept-loss`: an ingest goes on behind records that are gone from its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json, Streams, Yes
from rivermark.cli.console import out, plain, print_json
from rivermark.cli.deployment import an_ingest, settings_for, suited, topology
from rivermark.cli.session import new_run_id
from rivermark.model.printable import printable
from rivermark.model.source import Split


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
    from rivermark.runtime.supervision.reset import accept_loss as plan_loss

    settings = settings_for(home)
    results: list[dict[str, Any]] = []
    for ingest in suited(topology(), streams, group, an_ingest):
        gaps: list[Split] = []

        def agreed(lost: Sequence[Split], gaps: list[Split] = gaps) -> bool:
            gaps.extend(lost)
            if not as_json:
                for split in lost:
                    out().print(plain(f"gone: {printable(split.name)} ({split.reason})"))
            return not dry_run and (yes or typer.confirm("Go on without them?"))

        accepted = bool(plan_loss(settings, ingest, agreed, run_id=new_run_id()))
        listed = [{"name": split.name, "reason": split.reason} for split in gaps]
        results.append({"stream": ingest.name, "accepted": accepted, "gaps": listed})
        if not as_json:
            done = f"recorded; go on with: rivermark run {ingest.name}"
            out().print(plain(f"{ingest.name}: {done if accepted else 'nothing was changed'}"))
    if as_json:
        print_json({"streams": results})
