"""Counters and gauges that process functions report, from the recorded batches."""

from __future__ import annotations

from typing import Final

from rivermark.lake.snapshot import open_whole
from rivermark.lake.sql import query
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings

RECORDED: Final = (
    *("stream", "generation", "run_id", "started_at", "duration_ms", "rows_in", "watermark"),
    *("counters", "gauges"),
)
"""Columns that a status needs of the recorded batches: its own, and those of their numbers."""

# The newest generation only: a reset stream counts from nothing again.
NUMBERS: Final = """
WITH newest AS (
    SELECT stream, started_at, counters, gauges FROM progress
    QUALIFY generation = max(generation) OVER (PARTITION BY stream)
), counts AS (
    SELECT stream, unnest(map_keys(counters)) AS name, unnest(map_values(counters)) AS number
    FROM newest
), shown AS (
    SELECT stream, started_at, unnest(map_keys(gauges)) AS name, unnest(map_values(gauges)) AS value
    FROM newest
)
SELECT stream, name, sum(number)::DOUBLE AS number, true AS counted FROM counts GROUP BY ALL
UNION ALL
SELECT stream, name, arg_max(value, started_at) AS number, false FROM shown GROUP BY stream, name
ORDER BY stream, name
"""


def metrics_of_streams(settings: Settings) -> dict[str, dict[str, int | float]]:
    """Each stream's counters, added up over all its batches, and the newest value of its gauges."""
    lake = settings.lake()
    if not lake.exists(STREAM_PROGRESS):
        return {}
    progress = open_whole(lake, STREAM_PROGRESS, RECORDED)
    if "counters" not in progress.schema.names:
        # Written by an older version, and no batch since.
        return {}
    metrics: dict[str, dict[str, int | float]] = {}
    for row in query(NUMBERS, {"progress": progress}):
        number = int(row["number"]) if row["counted"] else float(row["number"])
        metrics.setdefault(row["stream"], {})[row["name"]] = number
    return metrics
