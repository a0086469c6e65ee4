"""`rivermark upkeep`: fewer files and a short log for tables that live for months."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rivermark.cli.arguments import DryRun, Groups, Home, Json, TableNames
from rivermark.cli.console import err, grid, number, out, plain, print_json
from rivermark.cli.deployment import settings_for, topology, with_tables_of
from rivermark.cli.session import new_run_id
from rivermark.model.errors import RivermarkError

if TYPE_CHECKING:
    from rivermark.lake.maintenance.maintain import MaintenanceResult

NUMBERS = ("joined", "deleted", "files", "before", "MB", "MB before", "log", "log before", "s")


def upkeep(
    tables: TableNames = None,
    group: Groups = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Join small files, and delete those that neither the retention of versions nor a stream needs.

    Streams may run meanwhile. Starts no Spark. Without names, all tables are maintained.

    JSON:
        dry_run, tables (table, dry_run, joined_files, deleted_files, deleted_log_entries,
        deleted_rows, seconds, notes, failed, before and after: files, bytes, live_files,
        live_bytes, log_files, log_bytes)

    Examples:
        rivermark upkeep --dry-run
        rivermark upkeep taxi/ride_events
    """
    # Here, because `rivermark --help` needs nothing of the runtime.
    from rivermark.backfill.maintenance import upkeep as maintain

    settings, declared = settings_for(home), topology()
    names = with_tables_of(settings.lake(), declared, tables, group)
    with err().status("Looking after tables"):
        done = maintain(settings, declared, names, run_id=new_run_id(), dry_run=dry_run)
    if as_json:
        print_json({"dry_run": dry_run, "tables": done})
    else:
        _show(done, settings.promise_days, dry_run=dry_run)
    failed = [f"table '{kept.table}': {kept.failed}" for kept in done if kept.failed]
    if failed:
        raise RivermarkError(f"not maintained: {'; '.join(failed)}")


def _show(done: Sequence[MaintenanceResult], days: float, *, dry_run: bool) -> None:
    title = f"every version of the last {days:g} days stays readable"
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
