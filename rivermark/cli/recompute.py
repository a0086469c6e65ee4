"""`rivermark recompute`: days of a stream, computed again from its inputs."""

from __future__ import annotations

from typing import Annotated

import typer

from rivermark.cli import moments
from rivermark.cli.console import err, grid, number, out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.engine import engine
from rivermark.cli.run import new_run_id
from rivermark.errors import RivermarkError
from rivermark.stream import Ingest


def recompute(
    stream: Annotated[str, typer.Argument(metavar="STREAM", help="A derived stream.")],
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="First day, like 2020-01-01.")
    ],
    last: Annotated[
        str | None, typer.Option("--to", metavar="DAY", help="Last day; default: the first one.")
    ] = None,
    as_of: Annotated[
        list[str] | None,
        typer.Option(
            "--as-of",
            metavar="V|TIME",
            help="Read the inputs as they were: a version, a moment (UTC), or TABLE=VERSION.",
        ),
    ] = None,
    home: Home = None,
) -> None:
    """Compute days of a stream again, with its own code, and replace them in its tables.

    Examples:
        rivermark recompute taxi/driver_tips --from 2020-01-01
        rivermark recompute taxi/zone_hours --from 2024-01-01 --to 2024-01-31 --as-of 3
    """
    settings = settings_for(home)
    found = topology().named(stream)
    from_day, to_day = moments.day(first), moments.day(last or first)
    pinned = moments.as_of(as_of or [])
    if isinstance(found, Ingest):
        raise RivermarkError(
            f"'{stream}' brings files in and has no inputs to compute it from; "
            f"to read its files again: rivermark reset {stream} --with-tables"
        )
    with engine(settings, "short") as spark, err().status(f"Computing {stream} again"):
        # Here, because Spark's modules are slow to import and the engine has them by now.
        from rivermark.runtime.recompute import recompute as compute

        report = compute(
            spark, settings, found, from_day, to_day, as_of=pinned, run_id=new_run_id()
        )
    read = ", ".join(f"{table} version {v}" for table, v in report.input_versions.items())
    out().print(plain(f"{stream}, {from_day} to {to_day}, from {read}"))
    table = grid(None, ("table", "rows before", "rows after", "version"), right=("rows before",))
    for name, after in report.rows_after.items():
        before, version = report.rows_before[name], report.output_versions[name]
        table.add_row(name, number(before), number(after), str(version))
    out().print(table)
