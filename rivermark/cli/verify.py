"""`rivermark verify`: a sample of closed days of derived tables, computed again and compared."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermark.cli.arguments import Groups, Home, Json, Streams
from rivermark.cli.backfill import backfill
from rivermark.cli.console import out, plain, print_json
from rivermark.cli.deployment import settings_for, suited, topology
from rivermark.cli.exit_codes import ExitCode


def verify(
    streams: Streams = None,
    group: Groups = None,
    day: Annotated[
        list[str] | None,
        typer.Option("--day", metavar="DAY", help="This day instead of a sample; may be repeated."),
    ] = None,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Recompute a sample of closed days of derived tables, and compare them with the tables.

    The count and the fingerprint of the rows are compared, for the newest closed day and for an
    earlier one that changes from date to date. This finds missing rows of a derived table, which no
    rule about its rows can show. Nothing is changed; streams may run meanwhile. The exit code is 1
    if a day differs. Without names, all streams are verified.

    JSON:
        a list of: stream, day, matches, skipped, published, computed, differences

    Examples:
        rivermark verify
        rivermark verify taxi/zone_hours --day 2020-01-01
    """
    # Here, because Spark's modules are slow to import and `--help` needs none of them.
    from rivermark.backfill.as_of import parse_day
    from rivermark.backfill.reprocess import derived
    from rivermark.backfill.verify import verify as compared

    settings, declared = settings_for(home), topology()
    chosen = (
        suited(declared, streams, group, derived) if streams or group else list(declared.streams)
    )
    days = [parse_day(text) for text in day or ()]
    with backfill(settings, declared, "Comparing") as context:
        results = [
            *compared(
                context.spark, context.lake, declared, chosen, days=days, on_step=context.on_step
            )
        ]
    if as_json:
        records = [
            {
                "stream": r.stream,
                "day": r.day,
                "matches": r.matches,
                "skipped": r.skipped,
                "published": {name: vars(f) for name, f in r.published.items()},
                "computed": {name: vars(f) for name, f in r.computed.items()},
                "differences": r.differences,
            }
            for r in results
        ]
        print_json(records)
    else:
        for result in results:
            out().print(plain(result.sentence, "" if result.matches else "red"), soft_wrap=True)
    if not all(r.matches for r in results):
        raise typer.Exit(ExitCode.FAULT)
