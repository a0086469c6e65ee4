"""`rivermark merge-late`: late rows of closed days, merged with all that follows from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rivermark.cli.arguments import DryRun, First, Groups, Home, Json, Streams
from rivermark.cli.backfill import backfill, money
from rivermark.cli.console import err, grid, number, out, plain, print_json
from rivermark.cli.deployment import settings_for, suited, topology
from rivermark.model.errors import RivermarkError

if TYPE_CHECKING:
    from rivermark.backfill.downstream import DownstreamResult
    from rivermark.backfill.late.days import LateDay
    from rivermark.backfill.late.merge import MergedDay
    from rivermark.backfill.late.run import MergeReport


COUNTS = ("rows_before", "rows_merged", "rows", "money_before", "money_merged", "money")


def merge_late(
    streams: Streams = None,
    group: Groups = None,
    first: First = None,
    last: Annotated[str | None, typer.Option("--to", metavar="DAY", help="Last day.")] = None,
    dry_run: DryRun = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Merge the late rows of closed days, and recompute what follows from them.

    Only days with late rows that are not merged yet are touched; downstream, only days whose rows
    differ are replaced. Streams may run meanwhile. If the command is killed, the next call finishes
    the merge.

    JSON:
        days (stream, day, rows, money, closed) in a dry run; else days (stream, day, rows_before,
        rows_merged, rows, money_before, money_merged, money), resumed, seconds,
        downstream (recomputed, pending, blocked, refreshing)

    Examples:
        rivermark merge-late --dry-run
        rivermark merge-late taxi/fare_events --from 2020-01-01 --to 2020-01-03
    """
    # Here, because `--help` needs nothing of the runtime.
    from rivermark.backfill.as_of import parse_day
    from rivermark.backfill.late import run
    from rivermark.backfill.late.days import chosen_ingests, late_days

    settings, declared = settings_for(home), topology()
    ingests = (
        suited(declared, streams, group, lambda each: chosen_ingests(declared, [each.name])[0])
        if streams or group
        else chosen_ingests(declared, [])
    )
    start, end = (parse_day(day) if day else None for day in (first, last))
    if dry_run:
        with err().status("Looking for late rows"):
            late = [
                day
                for ingest in ingests
                for day in late_days(settings, ingest, first=start, last=end)
            ]
        if as_json:
            names = ("stream", "day", "rows", "money", "closed")
            print_json({"days": [{name: getattr(day, name) for name in names} for day in late]})
        else:
            print_late(late)
        return
    with backfill(settings, declared, "Merging late rows") as context:
        report = run.merge_late(context, ingests, first=start, last=end)
    if as_json:
        days_merged = [
            {name: getattr(day, name) for name in ("stream", "day", *COUNTS)} for day in report.days
        ]
        downstream = downstream_as_plain(report.downstream)
        sums = {"resumed": report.resumed, "seconds": report.seconds}
        print_json({"days": days_merged, **sums, "downstream": downstream})
    else:
        print_report(report)
    if report.downstream.blocked:
        raise RivermarkError("\n".join(report.downstream.blocked.values()))


def print_late(days: list[LateDay]) -> None:
    """The days with late rows, and whether they are to be merged."""
    if not days:
        out().print(plain("no late row is left to merge"))
        return
    numeric = ("rows", "money")
    table = grid("late rows to merge", ("stream", "day", *numeric, "state"), right=numeric)
    for day in days:
        state = "to be merged" if day.closed else "open: waits until the watermark has passed it"
        table.add_row(day.stream, day.day.isoformat(), number(day.rows), money(day.money), state)
    out().print(table)


def print_report(report: MergeReport) -> None:
    """Rows and money before and after, and what became of the tables downstream."""
    if report.resumed:
        out().print(plain(f"{report.resumed} interrupted merges were finished"))
    if report.days:
        _print_days(report.days)
    elif not report.downstream.recomputed:
        out().print(plain("no closed day has late rows to merge"))
    print_downstream(report.downstream)
    out().print(plain(f"{report.rows:,} late rows merged in {report.seconds:.1f} s"))


def _print_days(days: list[MergedDay]) -> None:
    names = ("rows before", "merged", "rows after", "money before", "merged ", "money after")
    table = grid("late rows merged", ("stream", "day", *names), right=names)
    for day in days:
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


def print_downstream(result: DownstreamResult) -> None:
    """Prints the outcome of the tables downstream."""
    if result.recomputed:
        counts = ("days computed", "days changed", "rows before", "rows after")
        table = grid("recomputed", ("table", *counts), right=counts)
        for each in result.recomputed:
            table.add_row(
                each.table,
                number(len(each.days)),
                number(len(each.changed.days)),
                number(sum(each.rows_before.values())),
                number(sum(each.rows_after.values())),
            )
        out().print(table)
    for name, days in result.pending.items():
        if name not in result.blocked:
            listed = ", ".join(day.isoformat() for day in sorted(days))
            after = "pending until the merge after it is closed"
            out().print(plain(f"{name}: {listed} still open; {after}"))
    if result.refreshing:
        out().print(plain(f"follow by themselves when they run: {', '.join(result.refreshing)}"))


def downstream_as_plain(result: DownstreamResult) -> dict[str, Any]:
    """The outcome of the tables downstream, in values that JSON knows."""
    return {
        "recomputed": [
            {
                "table": each.table,
                "days_computed": sorted(each.days),
                "days_changed": sorted(each.changed.days),
                "rows_before": sum(each.rows_before.values()),
                "rows_after": sum(each.rows_after.values()),
            }
            for each in result.recomputed
        ],
        "pending": result.pending,
        "blocked": result.blocked,
        "refreshing": result.refreshing,
    }
