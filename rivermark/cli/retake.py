"""`rivermark retake`: files that changed after they were read, read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rivermark.cli.arguments import DryRun, Groups, Home, Json
from rivermark.cli.backfill import backfill
from rivermark.cli.console import grid, number, out, print_json
from rivermark.cli.deployment import an_ingest, attempted, settings_for, suited, topology
from rivermark.cli.merge_late import downstream_as_plain, print_downstream
from rivermark.model.errors import RivermarkError, WrongUse
from rivermark.model.printable import printable
from rivermark.model.stream import Ingest

if TYPE_CHECKING:
    from rivermark.backfill.retake import Retaken

COUNTS = ("rows", "admitted", "late", "quarantined")


def retake(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[STREAM] FILE...",
            help="An ingest (not with --group), and files as `rivermark files` names them.",
        ),
    ],
    group: Groups = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Read a changed file again; its new rows replace the former ones.

    The former rows stay in the quarantine as file_replaced. Closed days downstream are recomputed
    if they differ. The stream may run meanwhile; if the command is killed, run it again. With a
    group, the files are those of its ingests. `rivermark replay-ingest STREAM --undo ID` undoes it.

    JSON:
        files (file, id, former and now: rows, admitted, late, quarantined, now null in a dry run;
        downstream: recomputed, pending, blocked, refreshing)

    Examples:
        rivermark retake taxi/trip_records yellow_tripdata_2025-06.parquet
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.backfill.retake import former_reading
    from rivermark.backfill.retake import retake as read_again

    settings, declared = settings_for(home), topology()
    streams, files = ([], names) if group else (names[:1], names[1:])
    if not files:
        raise WrongUse("no file was named: `rivermark files STREAM` lists them")
    ingests, lake = suited(declared, streams, group, an_ingest), settings.lake()

    def read_by(name: str) -> list[tuple[Ingest, dict[str, Any]]]:
        # Of a group, the ingests that have not read the file are left out.
        read, _ = attempted(ingests, lambda each: (each, former_reading(lake, each, name)))
        return read

    meant = [(ingest, name, row) for name in files for ingest, row in read_by(name)]
    if dry_run:
        former = [(name, {count: row[count] or 0 for count in COUNTS}) for _, name, row in meant]
        if as_json:
            print_json({"files": [{"file": n, "former": f, "now": None} for n, f in former]})
        else:
            table = grid("files that would be read again", ("file", *COUNTS), right=COUNTS)
            for name, counts in former:
                table.add_row(printable(name), *map(number, counts.values()))
            out().print(table)
        return
    with backfill(settings, declared, "Reading files again") as context:
        done = [read_again(context, ingest, name) for ingest, name, _ in meant]
    if as_json:
        print_json({"files": [as_plain(each) for each in done]})
    else:
        _print_files(done)
        for each in done:
            print_downstream(each.downstream)
    blocked = [reason for each in done for reason in each.downstream.blocked.values()]
    if blocked:
        raise RivermarkError("\n".join(blocked))


def as_plain(done: Retaken) -> dict[str, Any]:
    """The readings of a file, and what followed."""
    now = {name: vars(done.outcome)[name] for name in COUNTS}
    return {
        "file": done.file,
        "id": done.id,
        "former": done.former,
        "now": now,
        "downstream": downstream_as_plain(done.downstream),
    }


def _print_files(done: list[Retaken]) -> None:
    names = [f"{name} {when}" for name in COUNTS for when in ("before", "now")]
    table = grid("files read again", ("file", *names, "id"), right=names)
    for each in done:
        now = vars(each.outcome)
        pairs = ((each.former[name], now[name]) for name in COUNTS)
        counts = (number(n) for pair in pairs for n in pair)
        table.add_row(printable(each.file), *counts, each.id)
    out().print(table)
