"""Rows that landed and of which nothing is known, told for the days to which their files belong."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date
from typing import Final

from rivermark.backfill.late.hours import day_of
from rivermark.lake.snapshot import opened
from rivermark.lake.sql import ask, quoted
from rivermark.model.stream import Ingest
from rivermark.model.table import days_between
from rivermark.monitor.checks.row_conservation import PLACES, counted_files
from rivermark.settings import Settings

UNKNOWN_DAY: Final = date.min
"""The day of a file of which no row is in any table."""


def unaccounted_by_day(settings: Settings, ingest: Ingest) -> dict[date, int]:
    """Rows that do not add up, by each day of event time that their file reaches into.

    A lost row has no event time any more, so every day that it may belong to is told: a day without
    one is sure. Rows that are there twice count as well.
    """
    wrong = [f for f in counted_files(settings, ingest) or () if f["wrong"]]
    found: dict[date, int] = defaultdict(int)
    for file in wrong:
        landed, *decided = (int(file[place]) for place in PLACES)
        rows = max(abs(landed - sum(decided)), abs(int(file["said"] or 0) - landed), 1)
        for day in _days_of_file(settings, ingest, file["file"]) or {UNKNOWN_DAY}:
            found[day] += rows
    return dict(found)


def _days_of_file(settings: Settings, ingest: Ingest, file: str) -> set[date]:
    """The days from the oldest to the newest row of a file."""
    lake, moments = settings.lake(), []
    for table, column in (
        (ingest.admitted, ingest.contract.event_time),
        (ingest.late, ingest.contract.event_time),
        (ingest.quarantine, "event_time"),
    ):
        row = ask(
            f"SELECT min({quoted(column)}) AS oldest, max({quoted(column)}) AS newest"  # noqa: S608
            " FROM found WHERE _file = ?",
            {"found": opened(lake, table)},
            [file],
        )[0]
        moments += [m.astimezone(UTC) for m in row.values() if m is not None]
    if not moments:
        return set()
    first, last = day_of(min(moments), ingest.days), day_of(max(moments), ingest.days)
    return set(days_between(first, last))
