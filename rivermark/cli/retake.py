"""`rivermark retake`: files that changed after they were read, read again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from rivermark.cli.backfill import backfill
from rivermark.cli.console import grid, number, out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.merge_late import print_downstream
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import Ingest

if TYPE_CHECKING:
    from rivermark.backfill.retake import Retaken


def retake(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="An ingest that reads files.")],
    names: Annotated[
        list[str], typer.Argument(metavar="FILE", help="As `rivermark files` names it.")
    ],
    home: Home = None,
) -> None:
    """Read a file again that changed after it was read; its new rows replace those of before.

    The former rows stay in the quarantine as file_replaced. Closed days downstream are recomputed
    where they differ. The stream may run meanwhile; where this is killed, call it again.

    Examples:
        rivermark retake taxi/trip_records yellow_tripdata_2025-06.parquet
    """
    # Here, because `rivermark --help` needs nothing of the runtime.
    from rivermark.backfill.retake import retake as read_again

    ingest = topology().named(stream)
    if not isinstance(ingest, Ingest):
        raise RivermarkError(f"'{stream}' reads tables, not a source; see: rivermark reprocess")
    with backfill(settings_for(home), topology(), f"Reading files of {stream} again") as context:
        done = [read_again(context, ingest, name) for name in names]
    _print_files(done)
    for each in done:
        print_downstream(each.downstream)
    blocked = [reason for each in done for reason in each.downstream.blocked.values()]
    if blocked:
        raise RivermarkError("\n".join(blocked))


def _print_files(done: list[Retaken]) -> None:
    counts = ("rows", "admitted", "late", "quarantined")
    names = [f"{name} {when}" for name in counts for when in ("before", "now")]
    table = grid("files read again", ("file", *names), right=names)
    for each in done:
        now = vars(each.outcome)
        pairs = ((each.former[name], now[name]) for name in counts)
        table.add_row(plain(each.file), *(number(n) for pair in pairs for n in pair))
    out().print(table)
