"""`rivermark readmit`: what the door would decide today about rows that came before."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from rivermark.cli import instants as moments
from rivermark.cli.console import err, grid, number, out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.merge_late import money
from rivermark.cli.run import new_run_id
from rivermark.cli.session import engine
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Ingest


def replay_ingest(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="A stream that reads files.")],
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="First day, like 2020-01-01.")
    ],
    last: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="Last day; default: the first one.")
    ] = None,
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
        rivermark readmit taxi/fare_events --from 2020-01-01
        rivermark readmit taxi/fare_events --from 2020-01-01 --to 2020-01-03 --lateness 300
    """
    settings, found = settings_for(home), topology().named(stream)
    from_day, to_day = moments.day(first), moments.day(last or first)
    if not isinstance(found, Ingest):
        raise RivermarkError(
            f"'{stream}' has no door; its days are computed again by: rivermark reprocess {stream}"
        )
    allowed = None if lateness is None else timedelta(milliseconds=round(lateness * 1000))
    with engine(settings, "short") as spark, err().status(f"Deciding again about {stream}"):
        # Here, because Spark's modules are slow to import and the engine has them by now.
        from rivermark.backfill.ingest_replay.run import replay_ingest as decide

        report = decide(
            spark, settings, found, from_day, to_day, lateness=allowed, run_id=new_run_id()
        )
    read = report.replayed
    out().print(
        plain(
            f"{stream}, {from_day} to {to_day}: {read.rows:,} rows of {read.files:,} files decided "
            f"again, {report.rows_changed:,} otherwise"
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
