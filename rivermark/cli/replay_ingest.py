"""`rivermark replay-ingest`: how admission would decide today about rows that came before."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rivermark.cli.arguments import Groups, Home, Json, Last, Streams
from rivermark.cli.backfill import backfill, money
from rivermark.cli.console import cell, grid, number, out, plain, print_json
from rivermark.cli.deployment import attempted, settings_for, suited, topology
from rivermark.model.errors import RivermarkError
from rivermark.model.printable import printable

if TYPE_CHECKING:
    from rivermark.backfill.ingest_replay.decisions import IngestReplay


def replay_ingest(
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="First day, like 2020-01-01.")
    ],
    streams: Streams = None,
    group: Groups = None,
    last: Last = None,
    lateness: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.001, help="Allow rows to be so late instead."),
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="List so many changed rows at most.")] = 20,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Decide again, from raw, about the rows of some days, and list the decisions that change.

    The rules are those that are declared now. Nothing that is published is touched: the rows go to
    tables below readmitted/, with the whole list of changes beside them.

    JSON:
        replays (stream, from, to, rows, files, rows_changed, table,
        turns (before, after, rows, money), sample (file, row, event_time, before, after))

    Examples:
        rivermark replay-ingest taxi/fare_events --from 2020-01-01
        rivermark replay-ingest taxi/fare_events --from 2020-01-01 --to 2020-01-03 --lateness 300
    """
    # Here, because Spark's modules are slow to import and `--help` needs none of them.
    from rivermark.backfill.as_of import parse_day
    from rivermark.backfill.ingest_replay import run

    days = parse_day(first), parse_day(last or first)
    declared = topology()
    names = suited(declared, streams, group, lambda each: run.an_admitting(each).name)
    with backfill(settings_for(home), declared, f"Replaying {', '.join(names)}") as context:
        replayed, failed = attempted(
            names,
            lambda name: (
                name,
                run.replay_ingest(context, name, *days, lateness_seconds=lateness),
            ),
        )
    if as_json:
        replays = [as_plain(name, *days, report, rows) for name, report in replayed]
        print_json({"replays": replays})
    else:
        for name, report in replayed:
            print_replay(name, *days, report, rows)
    if failed:
        raise RivermarkError("\n".join(map(str, failed)))


def as_plain(
    stream: str, from_day: date, to_day: date, report: IngestReplay, rows: int
) -> dict[str, Any]:
    """The changes, in values that JSON knows."""
    read = report.replayed
    return {
        "stream": stream,
        "from": from_day,
        "to": to_day,
        "rows": read.rows,
        "files": read.files,
        "rows_changed": report.rows_changed,
        "table": report.table,
        "turns": report.turns,
        "sample": report.sample[:rows],
    }


def print_replay(
    stream: str, from_day: date, to_day: date, report: IngestReplay, rows: int
) -> None:
    """Prints the changes: numbers of rows by decision, and some of them."""
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
                printable(row["file"]),
                number(row["row"]),
                *map(cell, (row["event_time"], row["before"], row["after"])),
            )
        out().print(listed)
    out().print(plain(f"all of them: rivermark show {report.table}"))
