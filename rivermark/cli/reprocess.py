"""`rivermark reprocess`: closed days of a stream, recomputed, compared, replaced or undone."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Final

import typer

from rivermark.cli.backfill import First, Last, backfill
from rivermark.cli.console import err, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.reprocessing_output import print_register, print_report
from rivermark.model.errors import RivermarkError

if TYPE_CHECKING:
    from rivermark.backfill.reprocess import Outcome, Way

A_DAY: Final = timedelta(days=1)


def reprocess(
    stream: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="A derived stream.")
    ] = None,
    first: First = None,
    last: Last = None,
    as_of: Annotated[
        list[str] | None,
        typer.Option(
            "--as-of",
            metavar="V|TIME|TABLE=V",
            help="Read the inputs as they were: a version, a moment (UTC), or one for each table.",
        ),
    ] = None,
    rehearse: Annotated[
        bool, typer.Option("--rehearse", help="Only compare; nothing published is touched.")
    ] = False,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if",
            metavar="NAME=VALUE",
            help="Only compare, with another parameter, or with build=MODULE:FUNCTION.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow-ups/--only", help="Also what lies downstream of the days, in its order."
        ),
    ] = False,
    undo: Annotated[
        str | None,
        typer.Option("--undo", metavar="ID", help="Restore the days before a reprocessing."),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Wait (up to a day) until the stream has closed the days."),
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List reprocessings, the newest first (no Spark).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    home: Home = None,
) -> None:
    """Recompute closed days of a stream, compare them with what is published, replace them.

    The versions of the inputs are pinned and recorded in ops/reprocessings; the same pins give the
    same rows again. Streams may run meanwhile. Days that the stream has not finished are refused.

    Examples:
        rivermark reprocess taxi/driver_tips --from 2020-01-01 --rehearse
        rivermark reprocess taxi/driver_tips --from 2020-01-01 --follow-ups
        rivermark reprocess taxi/zone_hours --from 2024-01-01 --to 2024-01-31 --as-of 3
        rivermark reprocess taxi/driver_tips --undo 20260702-141500-3f2a
        rivermark reprocess taxi/long_rides --from 2020-01-01 --what-if limit=90min
        rivermark reprocess --list
    """
    settings = settings_for(home)
    ways: list[Way] = ["undo"] if undo is not None else []
    ways += ["what_if"] if what_if else []
    ways += ["rehearse"] if rehearse else []
    if listed:
        if ways or first or last or as_of or follow or wait:
            raise RivermarkError("--list computes nothing: only a stream and --json go with it")
        print_register(settings.lake(), stream, as_json=as_json)
        return
    if stream is None:
        raise RivermarkError("which stream? `rivermark status` lists them; or give --list")
    if len(ways) > 1:
        raise RivermarkError("--rehearse, --what-if, --undo: one of them, as each is a way to run")
    # Here, because Spark's modules are slow to import and `--help` needs none of them.
    from rivermark.backfill import reprocess as library
    from rivermark.backfill.as_of import parse_as_of, parse_day

    declared = topology()
    request = library.Request(
        stream=library.derived(declared.named(stream)),
        way=ways[0] if ways else "replace",
        first=parse_day(first) if first else None,
        last=parse_day(last) if last else None,
        as_of=parse_as_of(*as_of or ()),
        undo_id=undo or "",
        parameters=pairs(what_if or []),
        follow_ups=follow,
        wait=A_DAY if wait else timedelta(0),
    )
    with backfill(settings, declared, "Reprocessing") as context:
        outcome = library.reprocess(context, request)
    print_outcome(outcome, as_json=as_json)


def pairs(texts: list[str]) -> dict[str, str]:
    """`NAME=VALUE` texts by name."""
    split = [text.partition("=") for text in texts]
    for text, (name, equals, _) in zip(texts, split, strict=True):
        if not (name and equals):
            raise RivermarkError(f"--what-if {text!r}: expected NAME=VALUE, such as limit=90min")
    return {name: value for name, _, value in split}


def print_outcome(outcome: Outcome, *, as_json: bool) -> None:
    """Print each reprocessing; what did not follow goes to where progress goes."""
    for name, reason in outcome.left.items():
        err().print(plain(f"not followed up: {name}: {reason}", "yellow"), soft_wrap=True)
    if as_json:
        sys.stdout.write(json.dumps([each.as_json() for each in outcome.done], indent=2) + "\n")
        return
    for each in outcome.done:
        print_report(each)
    if outcome.behind:
        behind = f"downstream, and not recomputed: {', '.join(outcome.behind)}"
        err().print(plain(f"{behind} (--follow-ups does it)"), soft_wrap=True)
