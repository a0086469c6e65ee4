"""`rivermark erase`: a person's rows taken out of every table, with a record of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rivermark.cli.arguments import DryRun, Home, Json, Yes
from rivermark.cli.console import err, grid, number, out, plain, print_json
from rivermark.cli.deployment import settings_for, topology
from rivermark.cli.session import new_run_id
from rivermark.model.errors import WrongUse
from rivermark.model.printable import printable

if TYPE_CHECKING:
    from rivermark.backfill.erasure.erase import Erasure


def erase(
    person: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[COLUMN=VALUE]...",
            help="A value of a personal column or a key; rows with any of them are the person's.",
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FILE", help="A file with a COLUMN=VALUE each line, in no history."
        ),
    ] = None,
    because: Annotated[
        str,
        typer.Option("--because", metavar="TEXT", help="The reason, such as a ticket's number."),
    ] = "",
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Remove a person's rows from all tables and their older versions, and record it.

    Raw, admitted, late and quarantined rows, dead letters, rows that were not delivered, derived
    tables, what resets and rehearsals have put aside, and tables of PostgreSQL that sinks write.
    Streams that write or read them must stand still and have read all: rivermark pause. Days
    downstream are pending then: rivermark merge-late. Older versions of these tables cannot be read
    any more. Where this is killed, call it again.

    The record (ops/erasures) holds digests, not the values. What is not reached is said: sources,
    topics, files, webhooks, state.

    JSON:
        erasure, dry_run, places (place, rows, old_files), left, pending (days by stream)

    Examples:
        rivermark erase email=ann@example.org --dry-run
        rivermark erase --from person.txt --because DSR-104 --yes
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.backfill.erasure.erase import erase as take_out
    from rivermark.backfill.erasure.person import person_of

    settings, declared = settings_for(home), topology()
    whose = person_of(declared, [*(person or ()), *(lines_of(file) if file else ())])

    def run(*, dry: bool) -> Erasure:
        with err().status("Erasing") as status:
            return take_out(
                settings,
                declared,
                whose,
                run_id=new_run_id(),
                dry_run=dry,
                because=because,
                on_step=lambda step: status.update(plain(step)),
            )

    if not dry_run and not yes:
        _print(run(dry=True), console_is_err=as_json)
        typer.confirm("Erase these rows for good?", abort=True, err=as_json)
    done = run(dry=dry_run)
    if as_json:
        print_json(as_plain(done))
    else:
        _print(done)


def lines_of(file: Path) -> list[str]:
    """The lines of a file that names a person. Raises WrongUse for one that cannot be read."""
    try:
        return [line for line in file.read_text("utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise WrongUse(f"{file} cannot be read: {error}") from error


def as_plain(done: Erasure) -> dict[str, Any]:
    """The erasure in values that JSON knows."""
    return {
        "erasure": done.id,
        "dry_run": done.dry_run,
        "places": done.places,
        "left": done.left,
        "pending": {stream: sorted(map(str, days)) for stream, days in done.pending.items()},
    }


def _print(done: Erasure, *, console_is_err: bool = False) -> None:
    console = err() if console_is_err else out()
    title = "would be erased" if done.dry_run else f"erased ({done.id})"
    counts = ("rows", "older files")
    table = grid(title, ("where", *counts), right=counts)
    for each in done.places:
        table.add_row(printable(each.place), number(each.rows), number(each.old_files))
    if done.places:
        console.print(table)
    else:
        console.print("no row was found")
    for sentence in done.left:
        console.print(plain(f"not reached: {sentence}"))
    for stream, days in done.pending.items():
        console.print(plain(f"{stream}: {len(days)} days are pending: rivermark merge-late"))
