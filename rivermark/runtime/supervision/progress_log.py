"""One row a batch of every stream, kept as a table."""

from __future__ import annotations

from dataclasses import asdict
from typing import Final

from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import append_rows
from rivermark.model.table import Table
from rivermark.runtime.batch_metrics import BatchMetrics

STREAM_PROGRESS: Final = Table(
    name="ops/stream_progress",
    schema="""
        stream string, generation int, run_id string, batch_id long, started_at timestamp,
        duration_ms long, rows_in long, rows_out long, admitted long, late long, quarantined long,
        files long, watermark timestamp, state_rows long, state_bytes long,
        dropped_by_watermark long, duplicates long, counters map<string, long>,
        gauges map<string, double>
    """,
    description="One row a micro-batch of every stream: rows, durations, watermark, state.",
)


class ProgressLog:
    """Collects batches and appends them to `ops/stream_progress`, many in one commit."""

    def __init__(self, lake: Lake) -> None:
        create_table(lake, STREAM_PROGRESS)
        self._lake = lake
        self._rows: list[BatchMetrics] = []

    def add(self, batch: BatchMetrics) -> None:
        """Keep a batch for the next flush."""
        self._rows.append(batch)

    def flush(self) -> None:
        """Append what was kept."""
        append_rows(self._lake, STREAM_PROGRESS, [asdict(row) for row in self._rows], {})
        self._rows.clear()
