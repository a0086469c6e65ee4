"""`rivermark replay-ingest`: rows that came before, decided as admission does today."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rivermark.cli.arguments import First, Groups, Home, Json, Last, Streams
from rivermark.cli.backfill import backfill, money
from rivermark.cli.console import cell, grid, number, out, plain, print_json
from rivermark.cli.deployment import attempted, settings_for, suited, topology
from rivermark.cli.merge_late import downstream_as_plain, print_downstream
from rivermark.model.errors import RivermarkError, WrongUse
from rivermark.model.printable import printable

if TYPE_CHECKING:
    from rivermark.backfill.downstream import DownstreamResult
    from rivermark.backfill.ingest_replay.run import IngestReplay
    from rivermark.backfill.result import Reprocessing


def replay_ingest(
    streams: Streams = None,
    group: Groups = None,
    first: First = None,
    last: Last = None,
    lateness: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=0.001, help="Try this lateness instead of the declared one."
        ),
    ] = None,
    replacing: Annotated[
        bool, typer.Option("--replace", help="Replace the former decisions by the new ones.")
    ] = False,
    undo: Annotated[
        str | None,
        typer.Option("--undo", metavar="ID", help="Restore the rows from before a replacement."),
    ] = None,
    rows: Annotated[int, typer.Option(min=0, help="Most changed rows to list.")] = 20,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Repeat the admission of some days from raw rows, and list the decisions that change.

    The rules are those that are declared now. Without --replace nothing that is published is
    touched: the rows go to tables below replayed/, with the whole list of changes beside them.
    With it they take the place of those that change, and closed days downstream are recomputed
    where they differ. The stream may run meanwhile; where this is killed, call it again.

    JSON:
        replays (stream, from, to, rows, files, rows_changed, table,
        turns (before, after, rows, money), sample (file, row, event_time, before, after),
        id, versions (by table: before, after), downstream: recomputed, pending, blocked,
        refreshing);
        with --undo an object of stream, id, versions and downstream

    Examples:
        rivermark replay-ingest taxi/fare_events --from 2020-01-01
        rivermark replay-ingest taxi/fare_events --from 2020-01-01 --to 2020-01-03 --lateness 300
        rivermark replay-ingest taxi/fare_events --from 2020-01-01 --replace
        rivermark replay-ingest taxi/fare_events --undo 20260702-141500-3f2a
    """
    # Here, because Spark's modules are slow to import and `--help` needs none of them.
    from rivermark.backfill.as_of import parse_day
    from rivermark.backfill.ingest_replay import run
    from rivermark.backfill.ingest_replay.undo import undo_replacement

    declared = topology()
    ingests = suited(declared, streams, group, run.an_admitting)
    names = ", ".join(ingest.name for ingest in ingests)
    if undo is not None:
        if len(ingests) > 1 or first or last or lateness or replacing:
            raise WrongUse("--undo takes the id of one replacement and no other option")
        with backfill(settings_for(home), declared, f"Putting back rows of {names}") as context:
            put_back, downstream = undo_replacement(context, ingests[0], undo)
        _print_done(put_back, downstream, as_json=as_json)
        return
    if first is None:
        raise WrongUse(
            "no day was given: give the first one, --from 2020-01-01 (and, if you "
            "like, the last one, --to)"
        )
    days = parse_day(first), parse_day(last or first)
    with backfill(settings_for(home), declared, f"Replaying {names}") as context:
        replayed, failed = attempted(
            ingests,
            lambda ingest: run.replay_ingest(
                context, ingest.name, *days, lateness_seconds=lateness, replacing=replacing
            ),
        )
    if as_json:
        print_json({"replays": [as_plain(report, rows) for report in replayed]})
    else:
        for report in replayed:
            print_replay(report, rows)
            if report.done is not None:
                _print_done(report.done, report.downstream, as_json=False)
    blocked = [reason for report in replayed for reason in report.downstream.blocked.values()]
    if failed or blocked:
        raise RivermarkError("\n".join([*map(str, failed), *blocked]))


def as_plain(report: IngestReplay, rows: int) -> dict[str, Any]:
    """The changes, in values that JSON knows."""
    read = report.replayed
    return {
        "stream": report.stream,
        "from": report.first,
        "to": report.last,
        "rows": read.rows,
        "files": read.files,
        "rows_changed": report.rows_changed,
        "table": report.table,
        "turns": report.turns,
        "sample": report.sample[:rows],
        **_done_as_plain(report.done, report.downstream),
    }


def _done_as_plain(done: Reprocessing | None, downstream: DownstreamResult) -> dict[str, Any]:
    tables = done.tables if done else {}
    return {
        "id": done.id if done else None,
        "versions": {
            name: {"before": outcome.version_before, "after": outcome.version_after}
            for name, outcome in tables.items()
        },
        "downstream": downstream_as_plain(downstream),
    }


def _print_done(done: Reprocessing | None, downstream: DownstreamResult, *, as_json: bool) -> None:
    if as_json:
        stream = done.stream if done else None
        print_json({"stream": stream, **_done_as_plain(done, downstream)})
        return
    if done is not None:
        tables = ", ".join(n for n, o in done.tables.items() if o.version_after is not None)
        back = f"rivermark replay-ingest {done.stream} --undo {done.id}"
        undone = "" if done.kind == "undone" else f"; to undo it: {back}"
        out().print(plain(f"{done.kind} as {done.id}: {tables}{undone}"), soft_wrap=True)
    print_downstream(downstream)


def print_replay(report: IngestReplay, rows: int) -> None:
    """Prints the changes: numbers of rows by decision, and some of them."""
    read = report.replayed
    out().print(
        plain(
            f"{report.stream}, {report.first} to {report.last}: {read.rows:,} rows of "
            f"{read.files:,} files decided again, {report.rows_changed:,} differently"
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
