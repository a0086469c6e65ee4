"""`rivermark verify`: a sample of closed days of derived tables, computed again and compared."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from rivermark.cli.backfill import backfill
from rivermark.cli.console import out, plain
from rivermark.cli.deployment import Home, selected, settings_for, topology


def verify(
    streams: Annotated[
        list[str] | None, typer.Argument(metavar="[STREAM]", help="Streams; default: all of them.")
    ] = None,
    day: Annotated[
        list[str] | None,
        typer.Option("--day", metavar="DAY", help="This day instead of a sample; may be repeated."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    home: Home = None,
) -> None:
    """Compute a sample of closed days of derived tables again, and compare them with the tables.

    By count and fingerprint of the rows, of the newest closed day and of one before it, another
    one each date. So a hole in a derived table is found that no rule about its rows can show.
    Nothing is changed; streams may run meanwhile. The exit code is 1 where a day differs.

    Examples:
        rivermark verify
        rivermark verify taxi/zone_hours --day 2020-01-01
    """
    # Here, because Spark's modules are slow to import and `--help` needs none of them.
    from rivermark.backfill.as_of import parse_day
    from rivermark.backfill.reprocess import derived
    from rivermark.backfill.verify import verify as compared

    settings, declared = settings_for(home), topology()
    chosen = selected(declared, streams or (), ())
    if streams:
        chosen = [derived(stream) for stream in chosen]
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
                "day": r.day.isoformat() if r.day else None,
                "matches": r.matches,
                "skipped": r.skipped,
                "published": {name: vars(f) for name, f in r.published.items()},
                "computed": {name: vars(f) for name, f in r.computed.items()},
                "differences": r.differences,
            }
            for r in results
        ]
        typer.echo(json.dumps(records, indent=2))
    else:
        for result in results:
            out().print(plain(result.sentence, "" if result.matches else "red"), soft_wrap=True)
    if not all(r.matches for r in results):
        raise typer.Exit(1)
