"""Output of a reprocessing on the console, and of the register of all of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from rivermark.cli.console import grid, moment, number, out, plain, print_json

if TYPE_CHECKING:
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
