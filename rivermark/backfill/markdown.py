"""A report as Markdown, for pages that show runs; personal values are hidden in it already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rivermark.backfill.difference import KINDS
from rivermark.backfill.result import Reprocessing, TableOutcome, plain


def summary(done: Reprocessing) -> str:
    """One table with a line for each published table."""
    rows = [
        [
            outcome.table,
            *(f"{getattr(outcome.difference, kind):,}" for kind in KINDS),
            ", ".join(f"{name} {n:,}" for name, n in outcome.difference.columns.items()),
            str(outcome.version_before),
            "" if outcome.version_after is None else str(outcome.version_after),
        ]
        for outcome in done.tables.values()
    ]
    return drawn(["table", *KINDS, "columns", "version before", "version after"], rows)


def days(outcome: TableOutcome) -> str:
    """What became of each day's rows, with the sums of its numbers before and after."""
    sums: dict[Any, list[str]] = {}
    for each in outcome.difference.sums:
        if each.before == each.after:
            sums.setdefault(each.day, [])
            continue
        sums.setdefault(each.day, []).append(f"{each.column}: {each.before} → {each.after}")
    rows = [
        [day.isoformat(), *(f"{n[kind]:,}" for kind in KINDS), "; ".join(sums.get(day, []))]
        for day, n in outcome.difference.days.items()
    ]
    return drawn(["day", *KINDS, "sums that moved"], rows)


def samples(outcome: TableOutcome) -> str:
    """A few rows of each kind that differ."""
    rows = [
        [sample.kind, _pairs(sample.key), _pairs(sample.values)]
        for sample in outcome.difference.samples
    ]
    return drawn(["kind", "key", "values (changed: before → after)"], rows) if rows else "None."


def drawn(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; a value can neither end its cell nor begin another line."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(_cell(text) for text in line)} |" for line in lines)


def _cell(text: str) -> str:
    kept = text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
    return " ".join(kept.split())


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_shown(value)}" for name, value in values.items())


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return " → ".join(str(plain(each)) for each in value)
    return str(plain(value))
