"""`rivermark fold-late`: late rows of closed days, taken in with all that follows from them."""

from __future__ import annotations

from contextlib import ExitStack
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated

import typer

from rivermark.cli import instants as moments
from rivermark.cli.console import err, grid, number, out, plain
from rivermark.cli.deployment import Home, settings_for, topology
from rivermark.cli.run import new_run_id
from rivermark.cli.session import engine
from rivermark.model.errors import RivermarkError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.backfill.late.days import LateDay
    from rivermark.backfill.late.run import MergeReport


def merge_late(
    stream: Annotated[
        str | None, typer.Argument(metavar="[STREAM]", help="An ingest; default: all of them.")
    ] = None,
    first: Annotated[
        str | None, typer.Option("--from", metavar="DAY", help="First day, like 2020-01-01.")
    ] = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DAY", help="Last day.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the days with late rows, and do nothing.")
    ] = False,
    home: Home = None,
) -> None:
    """Take the late rows of closed days in, and compute again what follows from them.

    Only days that have late rows which were not folded yet are touched; of the tables below only
    days whose rows differ are replaced. Streams may run meanwhile. Killed, it is finished by the
    next call.

    Examples:
        rivermark fold-late --dry-run
        rivermark fold-late taxi/fare_events --from 2020-01-01 --to 2020-01-03
    """
    # Here, because `rivermark --help` needs nothing of the runtime.
    from rivermark.backfill.late.days import chosen_ingests, late_days
    from rivermark.backfill.late.run import merge_late as fold

    settings, found = settings_for(home), topology()
    ingests = chosen_ingests(found, [stream] if stream else [])
    from_day = moments.day(first) if first else None
    to_day = moments.day(last) if last else None
    if dry_run:
        with err().status("Looking for late rows"):
            listed = [
                d for i in ingests for d in late_days(settings, i, first=from_day, last=to_day)
            ]
        _list(listed)
        return
    with ExitStack() as stack, err().status("Folding late rows") as status:
        started: list[SparkSession] = []

        def spark() -> SparkSession:
            if not started:
                started.append(stack.enter_context(engine(settings, "short")))
            return started[0]

        def tell(line: str) -> None:
            err().print(plain(line))
            status.update(line)

        report = fold(
            settings,
            found,
            ingests,
            spark,
            run_id=new_run_id(),
            first=from_day,
            last=to_day,
            tell=tell,
        )
    _report(report)
    if report.blocked:
        raise RivermarkError("\n".join(report.blocked.values()))


def _list(days: list[LateDay]) -> None:
    if not days:
        out().print(plain("no late row is left to be folded"))
        return
    table = grid("late rows that are not folded", ("stream", "day", "rows", "money", "state"),
                 right=("rows", "money"))  # fmt: skip
    for day in days:
        state = "to be folded" if day.closed else "open: waits until the watermark has passed it"
        table.add_row(day.stream, day.day.isoformat(), number(day.rows), money(day.money), state)
    out().print(table)


def _report(report: MergeReport) -> None:
    if report.taken_up:
        out().print(plain(f"{report.taken_up} folds that had been broken off were finished"))
    if not report.days and not report.recomputed:
        out().print(plain("no closed day has late rows to fold"))
    if report.days:
        names = ("rows before", "folded", "rows after", "money before", "folded ", "money after")
        table = grid("late rows folded", ("stream", "day", *names), right=names)
        for day in report.days:
            table.add_row(
                day.stream,
                day.day.isoformat(),
                number(day.rows_before),
                number(day.rows_merged),
                number(day.rows),
                money(day.money_before),
                money(day.money_merged),
                money(day.money),
            )
        out().print(table)
    if report.recomputed:
        counts = ("days computed", "days changed", "rows before", "rows after")
        table = grid("computed again", ("table", *counts), right=counts)
        for each in report.recomputed:
            table.add_row(
                each.table,
                number(len(each.days)),
                number(len(each.changed.days)),
                number(sum(each.rows_before.values())),
                number(sum(each.rows_after.values())),
            )
        out().print(table)
    for name, days in report.owed.items():
        if name in report.blocked:
            continue
        listed = ", ".join(day.isoformat() for day in sorted(days))
        out().print(plain(f"{name}: {listed} still open; the fold after it is closed computes it"))
    if report.follow:
        out().print(plain(f"follow by themselves when they run: {', '.join(report.follow)}"))
    out().print(plain(f"{report.rows:,} late rows folded in {report.seconds:.1f} s"))


def money(amount: Decimal | None) -> str:
    """An amount with thousands marks and two places; nothing for None."""
    if amount is None:
        return ""
    return f"{amount:,.2f}"
