"""`rivermark upkeep`: fewer files and a short log for tables that live for months."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermark.cli.console import grid, number, out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.run import new_run_id

NUMBERS = ("joined", "deleted", "files", "before", "MB", "MB before", "log", "log before", "s")


def upkeep(
    tables: Annotated[
        list[str] | None, typer.Argument(metavar="[TABLE]", help="Tables; default: all of them.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    home: Home = None,
) -> None:
    """Join small files, and delete what neither the retention of versions nor a stream needs.

    Streams may run meanwhile. Starts no Spark.

    Examples:
        rivermark upkeep --dry-run
        rivermark upkeep taxi/ride_events
    """
    # Here, because `rivermark --help` needs nothing of the runtime.
    from rivermark.backfill.maintenance import upkeep as maintain

    settings, declared = settings_for(home), topology()
    done = maintain(settings, declared, tables or (), run_id=new_run_id(), dry_run=dry_run)
    title = f"every version of the last {settings.promise_days:g} days stays readable"
    table = grid(f"{'dry run, ' if dry_run else ''}{title}", ("table", *NUMBERS), right=NUMBERS)
    for kept in done:
        table.add_row(
            kept.table,
            number(kept.joined_files),
            number(kept.deleted_files),
            number(kept.after.files),
            number(kept.before.files),
            f"{kept.after.bytes / 1e6:,.1f}",
            f"{kept.before.bytes / 1e6:,.1f}",
            number(kept.after.log_files),
            number(kept.before.log_files),
            f"{kept.seconds:.1f}",
        )
    out().print(table)
    for kept in done:
        for note in kept.notes:
            out().print(plain(f"{kept.table}: {note}"))
