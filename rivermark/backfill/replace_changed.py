"""Days of a derived stream recomputed, and replaced only where their rows differ."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import date

from rivermark.backfill.affected_days import Changed
from rivermark.backfill.context import BackfillContext
from rivermark.backfill.recompute import Order, replace
from rivermark.lake.day_predicates import ranges
from rivermark.model.stream import Stream


@dataclass
class RecomputedTable:
    """The days of a table that were computed, those that differed, and their rows."""

    table: str
    days: tuple[date, ...]
    changed: Changed = field(default_factory=Changed)
    rows_before: dict[date, int] = field(default_factory=dict)
    rows_after: dict[date, int] = field(default_factory=dict)


def replace_changed(
    context: BackfillContext, stream: Stream, days: Collection[date], *, because: str
) -> list[RecomputedTable]:
    """Compute the days from the newest inputs, and replace those whose rows differ.

    One reprocessing for each range of consecutive days; `context.on_done` gets those that replaced
    rows, which are in the register and can be undone as any other. The stream must have closed the
    days. Raises PublicationBlocked where rows break a critical rule.
    """
    tables = {t.name: RecomputedTable(t.name, tuple(sorted(days))) for t in stream.tables}
    for first, last in ranges(days):
        order = Order(
            stream=stream,
            first=first,
            last=last,
            run_id=context.run_id,
            because=because,
            on_step=context.on_step,
            where_different=True,
        )
        done = replace(context.engine_for(stream, first, last), context.settings, order)
        for outcome in done.tables.values():
            table, difference = tables[outcome.table], outcome.difference
            table.changed |= Changed.where_different(difference)
            for day, rows in difference.days.items():
                kept = rows["changed"] + rows["unchanged"]
                table.rows_before[day] = kept + rows["removed"]
                table.rows_after[day] = kept + rows["added"]
        if not done.same:
            context.on_done(done)
    return list(tables.values())
