"""One row a batch of every stream, kept as a table."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

from rivermark.lake.lake import Lake
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import append_rows
from rivermark.model.errors import TableDamaged
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


LOG = logging.getLogger("rivermark")


class ProgressLog:
    """Collects batches and appends them to `ops/stream_progress`, many in one commit.

    It is a record: where the table is damaged a warning says so, and streams go on without it.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._rows: list[BatchMetrics] = []
        self._reported = False
        self._unless_damaged(lambda: create_table(lake, STREAM_PROGRESS))

    def add(self, batch: BatchMetrics) -> None:
        """Keep a batch for the next flush."""
        self._rows.append(batch)

    def flush(self) -> None:
        """Append what was kept."""
        rows = [asdict(row) for row in self._rows]
        self._unless_damaged(lambda: append_rows(self._lake, STREAM_PROGRESS, rows, {}))
        self._rows.clear()

    def _unless_damaged(self, write: Callable[[], None]) -> None:
        try:
            write()
        except TableDamaged as damage:
            if not self._reported:
                LOG.warning(
                    "batches are not recorded: %s. Or move %s away, and a new one is begun",
                    *(damage, self._lake.path(STREAM_PROGRESS)),
                )
            self._reported = True
