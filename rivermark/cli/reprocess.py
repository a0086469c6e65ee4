"""`rivermark reprocess`: closed days of a stream, recomputed, compared, replaced or undone."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from rivermark.cli.arguments import DryRun, First, Groups, Home, Json, Last, Streams
from rivermark.cli.backfill import backfill
from rivermark.cli.console import err, grid, moment, number, out, plain, print_json
from rivermark.cli.deployment import attempted, selected, settings_for, suited, topology
from rivermark.model.errors import RivermarkError, WrongUse
from rivermark.model.time import DAY

if TYPE_CHECKING:
    from rivermark.backfill.reprocess import Outcome, Way
    from rivermark.backfill.result import Reprocessing, TableOutcome
    from rivermark.lake.lake import Lake


NUMBERS: Final = ("added", "removed", "changed", "unchanged")


def print_report(done: Reprocessing) -> None:
    """Prints what was read, what differs and what became of it."""
    read = ", ".join(f"{table} version {v}" for table, v in done.inputs.items())
    changes = ", ".join(f"{name}={value}" for name, value in done.parameters.items())
    days = f"{done.first} to {done.last}, {done.kind}" + (f" with {changes}" if changes else "")
    console = out()
    console.print(
        plain(
            f"{done.stream}, {days}, from {read}",
            "bold",
        ),
        soft_wrap=True,
    )
    versions = ("before", "after")
    table = grid(None, ("table", *NUMBERS, "columns", *versions), right=(*NUMBERS, *versions))
    for name, outcome in done.tables.items():
        difference = outcome.difference
        after = "" if outcome.version_after is None else str(outcome.version_after)
        table.add_row(
            name,
            *(number(getattr(difference, kind)) for kind in NUMBERS),
            ", ".join(f"{column} {n:,}" for column, n in difference.columns.items()),
            str(outcome.version_before),
            after,
        )
    console.print(table)
    for outcome in done.tables.values():
        _print_sums(outcome)
        _print_samples(outcome)
        for target, effect in outcome.sinks.items():
            console.print(plain(f"{outcome.table}: {target}: {effect}"), soft_wrap=True)
        if outcome.side:
            console.print(plain(f"the computed rows: {outcome.side}"), soft_wrap=True)
        if outcome.conflicts:
            console.print(plain(f"{outcome.table}: {outcome.conflicts} conflicts, tried again"))
    undo = f"; undo: rivermark reprocess {done.stream} --undo {done.id}"
    kept = any(outcome.version_after is not None for outcome in done.tables.values())
    console.print(plain(f"{done.id}, {done.seconds:.1f} s{undo if kept else ''}"), soft_wrap=True)


def print_register(lake: Lake, streams: Collection[str], *, as_json: bool) -> None:
    """Prints what was reprocessed, the newest first."""
    from rivermark.backfill.registry import newest_records
    from rivermark.backfill.result import record_json

    one = next(iter(streams)) if len(streams) == 1 else None
    records = [r for r in newest_records(lake, one) if not streams or r.stream in streams]
    if as_json:
        print_json([record_json(record) for record in records])
        return
    columns = ("id", "kind", "table", "from", "to", *NUMBERS, "before", "after", "by", "because")
    table = grid(None, columns, right=(*NUMBERS, "before", "after"))
    for record in records:
        after = "" if record.version_after is None else str(record.version_after)
        table.add_row(
            record.id,
            record.kind,
            record.table,
            record.first_day.isoformat(),
            record.last_day.isoformat(),
            *(number(getattr(record, kind)) for kind in NUMBERS),
            str(record.version_before),
            after,
            record.by,
            record.because or "",
        )
    out().print(table if records else plain("nothing was reprocessed yet"))


def _print_sums(outcome: TableOutcome) -> None:
    moved = [s for s in outcome.difference.sums if s.before != s.after]
    if not moved:
        return
    table = grid(
        f"sums of {outcome.table}", ("day", "column", "before", "after"), right=("before", "after")
    )
    for each in moved:
        table.add_row(each.day.isoformat(), each.column, _text(each.before), _text(each.after))
    out().print(table)


def _print_samples(outcome: TableOutcome) -> None:
    samples = outcome.difference.samples
    if not samples:
        return
    table = grid(f"some rows of {outcome.table} that differ", ("kind", "key", "values"))
    for each in samples:
        table.add_row(each.kind, _pairs(each.key), _pairs(each.values))
    out().print(table)


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {_text(value)}" for name, value in values.items())


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return " → ".join(_text(each) for each in value)
    if hasattr(value, "astimezone"):
        return moment(value)
    return "" if value is None else str(value)


def reprocess(
    streams: Streams = None,
    group: Groups = None,
    first: First = None,
    last: Last = None,
    as_of: Annotated[
        list[str] | None,
        typer.Option(
            "--as-of",
            metavar="V|TIME|TABLE=V",
            help="Read the inputs as they were: a version, a moment (UTC), or one for each table.",
        ),
    ] = None,
    dry_run: DryRun = False,
    rehearse: Annotated[bool, typer.Option("--rehearse", hidden=True)] = False,
    what_if: Annotated[
        list[str] | None,
        typer.Option(
            "--what-if",
            metavar="NAME=VALUE",
            help="Only compare, with another parameter, or with build=MODULE:FUNCTION.",
        ),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow-ups/--only", help="Also recompute the days downstream, in lineage order."
        ),
    ] = False,
    undo: Annotated[
        str | None,
        typer.Option("--undo", metavar="ID", help="Restore the days before a reprocessing."),
    ] = None,
    wait: Annotated[
        bool,
        typer.Option("--wait", help="Wait (up to a day) until the stream has closed the days."),
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List reprocessings, the newest first (no Spark).")
    ] = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Recompute closed days of a stream, compare them with the published ones, and replace them.

    The versions of the inputs are pinned and recorded in ops/reprocessings; the same pins give the
    same rows again. Streams may run meanwhile. Days that the stream has not finished are refused. A
    dry run only compares; nothing published is touched. With a group, its derived streams are
    reprocessed.

    JSON:
        a list of: id, kind, stream, from, to, at, run_id, by, inputs, parameters, code, because,
        seconds, tables (by name: version_before, version_after, added, removed, changed,
        unchanged, changed_columns, days, sums, samples, side, sinks and more);
        with --list a list of: id, kind, stream, table, first_day, last_day, added, removed,
        changed, unchanged, version_before, version_after, by, because and more

    Examples:
        rivermark reprocess taxi/driver_tips --from 2020-01-01 --dry-run
        rivermark reprocess taxi/driver_tips --from 2020-01-01 --follow-ups
        rivermark reprocess taxi/zone_hours --from 2024-01-01 --to 2024-01-31 --as-of 3
        rivermark reprocess taxi/driver_tips --undo 20260702-141500-3f2a
        rivermark reprocess taxi/long_rides --from 2020-01-01 --what-if limit=90min
        rivermark reprocess --list
    """
    settings = settings_for(home)
    ways: list[Way] = ["undo"] if undo is not None else []
    ways += ["what_if"] if what_if else []
    ways += ["rehearse"] if dry_run or rehearse else []
    if listed:
        if ways or first or last or as_of or follow or wait:
            raise WrongUse("--list computes nothing: give only streams and --json with it")
        names = [s.name for s in selected(topology(), streams or (), group or ())]
        print_register(settings.lake(), names if streams or group else (), as_json=as_json)
        return
    if len(ways) > 1:
        raise WrongUse("--dry-run, --what-if and --undo exclude one another; give one of them")
    # Here, because Spark's modules are slow to import and `--help` needs none of them.
    from rivermark.backfill import reprocess as library
    from rivermark.backfill.as_of import parse_as_of, parse_day

    declared = topology()
    requests = [
        library.Request(
            stream=stream,
            way=ways[0] if ways else "replace",
            first=parse_day(first) if first else None,
            last=parse_day(last) if last else None,
            as_of=parse_as_of(*as_of or ()),
            undo_id=undo or "",
            parameters=pairs(what_if or []),
            follow_ups=follow,
            wait=DAY if wait else timedelta(0),
        )
        for stream in suited(declared, streams, group, library.derived)
    ]
    if undo is not None and len(requests) > 1:
        raise WrongUse("--undo restores one stream, that of the reprocessing; name no other")
    with backfill(settings, declared, "Reprocessing") as context:
        outcomes, failed = attempted(requests, lambda each: library.reprocess(context, each))
    print_outcomes(outcomes, as_json=as_json)
    if failed:
        raise RivermarkError("\n".join(map(str, failed)))


def pairs(texts: list[str]) -> dict[str, str]:
    """`NAME=VALUE` texts by name."""
    split = [text.partition("=") for text in texts]
    for text, (name, equals, _) in zip(texts, split, strict=True):
        if not (name and equals):
            raise WrongUse(f"--what-if {text!r}: expected NAME=VALUE, such as limit=90min")
    values = {name: value for name, _, value in split}
    if len(values) < len(texts):
        raise WrongUse("--what-if: a name occurs twice; give one value for each name")
    return values


def print_outcomes(outcomes: list[Outcome], *, as_json: bool) -> None:
    """Print each reprocessing; what did not follow goes to where progress goes."""
    left = {name: reason for outcome in outcomes for name, reason in outcome.left.items()}
    for name, reason in left.items():
        err().print(plain(f"not followed up: {name}: {reason}", "yellow"), soft_wrap=True)
    done = [each for outcome in outcomes for each in outcome.done]
    if as_json:
        print_json([each.as_json() for each in done])
        return
    for each in done:
        print_report(each)
    names = {each.stream for each in done}
    behind = [name for outcome in outcomes for name in outcome.behind if name not in names]
    if behind:
        listed = ", ".join(dict.fromkeys(behind))
        said = f"downstream, and not recomputed: {listed} (--follow-ups does it)"
        err().print(plain(said), soft_wrap=True)
