"""The days to which records belonged that were gone from a source before they were read."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from typing import Any, Final

from rivermark.backfill.late.hours import day_of
from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.snapshot import open_table
from rivermark.lake.sql import query, quoted
from rivermark.model.source import LOST
from rivermark.model.stream import Ingest
from rivermark.model.table import days_between
from rivermark.settings import Settings

BATCHES: Final = """
SELECT DISTINCT ingest_batch AS batch FROM outcomes WHERE stream = $stream AND status = $lost
"""
AROUND: Final = """
SELECT max({time}) FILTER (_ingest_batch < $batch) AS before,
       min({time}) FILTER (_ingest_batch > $batch) AS after
FROM admitted_rows
"""


def gaps_by_day(settings: Settings, ingest: Ingest) -> dict[date, int]:
    """Number of accepted gaps to which each day may have lost records.

    What is gone has no event time any more. It lay between what was admitted before and after it,
    so every day from the one to the other is concerned.
    """
    lake = settings.lake()
    if not all(lake.exists(table) for table in (INGEST_FILES, ingest.versions)):
        return {}
    own = {"stream": ingest.name, "lost": LOST}
    batches = query(BATCHES, {"outcomes": open_table(lake, INGEST_FILES)}, own)
    gaps: Counter[date] = Counter()
    for batch in batches:
        [row] = query(
            AROUND.format(time=quoted(ingest.contract.event_time)),
            {"admitted_rows": open_table(lake, ingest.versions)},
            batch,
        )
        gaps.update(_days(ingest, row))
    return dict(gaps)


def _days(ingest: Ingest, row: dict[str, Any]) -> list[date]:
    ends: list[datetime] = [m.astimezone(UTC) for m in (row["before"], row["after"]) if m]
    if not ends:
        return []
    return [*days_between(day_of(min(ends), ingest.days), day_of(max(ends), ingest.days))]
