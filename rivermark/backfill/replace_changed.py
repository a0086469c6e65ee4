"""Days of a derived stream computed again, and replaced only where the result is another."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import date

from pyspark.sql import SparkSession

from rivermark.backfill.affected_days import Changed, of_difference
from rivermark.backfill.recompute import OnStep, Order, replace, silent
from rivermark.backfill.result import Reprocessing
from rivermark.lake.day_predicates import ranges
from rivermark.model.stream import Stream
from rivermark.settings import Settings


@dataclass
class RecomputedTable:
    """What became of a table's days: those that were computed, and those that differed."""

    table: str
    days: tuple[date, ...]
    changed: Changed = field(default_factory=Changed)
    rows_before: dict[date, int] = field(default_factory=dict)
    rows_after: dict[date, int] = field(default_factory=dict)


def mend(
    spark: SparkSession,
    settings: Settings,
    stream: Stream,
    days: Collection[date],
    *,
    because: str,
    run_id: str,
    on_step: OnStep = silent,
    on_done: Callable[[Reprocessing], None] = lambda _: None,
) -> list[RecomputedTable]:
    """Compute the days again from the newest input, and replace those whose rows differ.

    One reprocessing for each stretch of days without a gap; `on_done` hears of those that replaced
    rows, which are in the register and can be undone as any other. The stream must have closed the
    days. Raises PublicationBlocked where rows break a critical rule.
    """
    found = {t.name: RecomputedTable(t.name, tuple(sorted(days))) for t in stream.tables}
    for first, last in ranges(days):
        order = Order(
            stream=stream,
            first=first,
            last=last,
            run_id=run_id,
            because=because,
            on_step=on_step,
            where_different=True,
        )
        done = replace(spark, settings, order)
        for outcome in done.tables.values():
            mine, difference = found[outcome.table], outcome.difference
            mine.changed |= of_difference(difference)
            for day, rows in difference.days.items():
                kept = rows["changed"] + rows["unchanged"]
                mine.rows_before[day] = kept + rows["removed"]
                mine.rows_after[day] = kept + rows["added"]
        if not done.same:
            on_done(done)
    return list(found.values())
