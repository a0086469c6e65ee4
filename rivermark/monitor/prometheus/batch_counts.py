"""Counters and histograms of batches: each recorded batch counts once, and no count ever falls.

The table of batches itself would not do: upkeep takes its oldest rows, and Prometheus takes a sum
that falls for a counter that was reset.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from rivermark.lake.log import CommitLog
from rivermark.lake.rows_in_files import InFiles
from rivermark.lake.snapshot import open_whole
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings

COUNTED: Final = {
    "rows_in": "Rows, messages or records that a stream has read.",
    "rows_out": "Rows that a stream has written to its tables.",
    "admitted": "Rows of an ingest that are in its table.",
    "late": "Rows of an ingest that came after its watermark.",
    "quarantined": "Rows of an ingest that break its contract.",
    "files": "Files or other splits that an ingest has taken.",
    "duplicates": "Rows that were left out as duplicates.",
    "dropped_by_watermark": "Rows that an operator dropped as too late.",
}
"""Columns of `ops/stream_progress` that are added up, and what they say."""
SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Upper bounds of the histogram of batches."""


class BatchCounts:
    """Metrics of the batches of some streams, in a registry."""

    def __init__(
        self, settings: Settings, streams: Collection[str], registry: CollectorRegistry
    ) -> None:
        self._lake = settings.lake()
        self._streams = streams
        self._next = 0
        names = ["stream"]
        self._counters = {
            column: Counter(f"rivermark_{column}", text, names, registry=registry)
            for column, text in COUNTED.items()
        }
        self._seconds = Histogram(
            "rivermark_batch_seconds",
            "Duration of a batch, from its plan to its commit.",
            names,
            buckets=SECONDS,
            registry=registry,
        )
        self._last = Gauge(
            "rivermark_last_batch_timestamp_seconds",
            "Start of the newest recorded batch.",
            names,
            registry=registry,
        )
        self._state = {
            column: Gauge(f"rivermark_{column}", text, names, registry=registry)
            for column, text in (
                ("state_rows", "Rows in the state of a stream after its newest recorded batch."),
                ("state_bytes", "Memory that the state of a stream takes."),
            )
        }
        of_process = ["stream", "name"]
        self._process = (
            Counter(
                "rivermark_process", "Counters of process functions.", of_process, registry=registry
            ),
            Gauge(
                "rivermark_process_value",
                "Gauges of process functions.",
                of_process,
                registry=registry,
            ),
        )

        for stream in streams:
            # At 0, or a rate would not see the first batch.
            for column in ("rows_in", "rows_out"):
                self._counters[column].labels(stream)
            self._seconds.labels(stream)

    def count_new(self) -> None:
        """Count the batches that were recorded since the last call. Raises TableDamaged."""
        path = self._lake.path(STREAM_PROGRESS)
        latest = CommitLog(path).latest()
        if latest is None or latest.version == self._next - 1:
            return
        if latest.version < self._next:
            self._next = 0  # It is another table now.
        if self._next == 0:
            rows: Iterable[dict[str, Any]] = open_whole(self._lake, STREAM_PROGRESS).to_pylist()
        else:
            added = [*CommitLog(path).files_added(self._next, latest.version + 1)]
            rows = InFiles(path, STREAM_PROGRESS, added).arrow().to_pylist()
        for row in sorted(rows, key=lambda row: (row["generation"], row["batch_id"])):
            if row["stream"] in self._streams:
                self._count(row)
        self._next = latest.version + 1

    def _count(self, row: Mapping[str, Any]) -> None:
        stream = row["stream"]
        for column, counter in self._counters.items():
            if row[column] is not None:
                counter.labels(stream).inc(row[column])
        self._seconds.labels(stream).observe((row["duration_ms"] or 0) / 1000)
        if row["started_at"] is not None:
            self._last.labels(stream).set(row["started_at"].timestamp())
        for column, gauge in self._state.items():
            gauge.labels(stream).set(row[column] or 0)
        counts, values = self._process
        for name, number in row.get("counters") or ():
            counts.labels(stream, name).inc(max(0, number))
        for name, number in row.get("gauges") or ():
            values.labels(stream, name).set(number)
