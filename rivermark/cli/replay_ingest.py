"""`rivermark replay-ingest`: how admission would decide today about rows that came before."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermark.cli.backfill import Last, backfill, money
from rivermark.cli.console import grid, number, out, plain
from rivermark.cli.deployment import Home, settings_for, topology


def replay_ingest(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="A stream that reads a source.")],
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="First day, like 2020-01-01.")
    ],
    last: Last = None,
    lateness: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.001, help="Allow rows to be so late instead."),
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="List so many changed rows at most.")] = 20,
    home: Home = None,
) -> None:
    """Decide again, from raw, about the rows of some days, and list the decisions that change.

    The rules are those that are declared now. Nothing that is published is touched: the rows go to
    tables below readmitted/, with the whole list of changes beside them.

    Examples:
        rivermark replay-ingest taxi/fare_events --from 2020-01-01
        rivermark replay-ingest taxi/fare_events --from 2020-01-01 --to 2020-01-03 --lateness 300
    """
    # Here, because Spark's modules are slow to import and `--help` needs none of them.
    from rivermark.backfill.as_of import parse_day
    from rivermark.backfill.ingest_replay import run

    from_day, to_day = parse_day(first), parse_day(last or first)
    with backfill(settings_for(home), topology(), f"Replaying {stream}") as context:
        report = run.replay_ingest(context, stream, from_day, to_day, lateness_seconds=lateness)
    read = report.replayed
    out().print(
        plain(
            f"{stream}, {from_day} to {to_day}: {read.rows:,} rows of {read.files:,} files decided "
            f"again, {report.rows_changed:,} differently"
        )
    )
    if not report.turns:
        return
    table = grid("decisions", ("before", "after", "rows", "money"), right=("rows", "money"))
    for turn in report.turns:
        table.add_row(turn.before, turn.after, number(turn.rows), money(turn.money))
    out().print(table)
    if rows:
        listed = grid(None, ("file", "row", "event time", "before", "after"), right=("row",))
        for row in report.sample[:rows]:
            listed.add_row(
                row["file"], number(row["row"]), row["event_time"], row["before"], row["after"]
            )
        out().print(listed)
    out().print(plain(f"all of them: rivermark show {report.table}"))
