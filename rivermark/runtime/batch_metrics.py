"""What a batch did, told by whoever wrote it and by Spark's own report, and the sum over a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Final

METRICS: Final = "metrics/"
"""A process's own numbers are reported by their names with this before them."""


@dataclass
class BatchTally:
    """One micro-batch of a stream in figures; times are UTC, sizes in bytes, durations in ms.

    `counters` and `gauges` are the numbers that a process function gave itself.
    """

    stream: str
    generation: int
    run_id: str
    batch_id: int
    started_at: datetime
    duration_ms: int = 0
    rows_in: int = 0
    rows_out: int = 0
    admitted: int | None = None
    late: int | None = None
    quarantined: int | None = None
    files: int | None = None
    watermark: datetime | None = None
    state_rows: int = 0
    state_bytes: int = 0
    dropped_by_watermark: int = 0
    duplicates: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)


@dataclass
class StreamSummary:
    """A stream over a run so far: totals, the last known state, and what is still pending.

    `touched_days` are the days that a refreshing stream wrote. `pending` says in words what waits
    (open windows, files that cannot be read yet); empty when nothing does.
    """

    stream: str
    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    admitted: int = 0
    late: int = 0
    quarantined: int = 0
    duplicates: int = 0
    dropped_by_watermark: int = 0
    files: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    batch_ms: int = 0
    busy_ms: int = 0
    watermark: datetime | None = None
    touched_days: set[date] = field(default_factory=set)
    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)
    pending: list[str] = field(default_factory=list)
    error: str | None = None

    def add(self, batch: BatchTally) -> None:
        """Count a finished batch in."""
        self.batches += 1
        self.rows_in += batch.rows_in
        self.rows_out += batch.rows_out
        self.admitted += batch.admitted or 0
        self.late += batch.late or 0
        self.quarantined += batch.quarantined or 0
        self.files += batch.files or 0
        self.duplicates += batch.duplicates
        self.dropped_by_watermark += batch.dropped_by_watermark
        self.state_rows, self.state_bytes = batch.state_rows, batch.state_bytes
        self.batch_ms = batch.duration_ms
        self.busy_ms += batch.duration_ms
        for name, count in batch.counters.items():
            self.counters[name] = self.counters.get(name, 0) + count
        self.gauges.update(batch.gauges)
        if batch.watermark and (self.watermark is None or batch.watermark > self.watermark):
            self.watermark = batch.watermark

    def metrics(self) -> dict[str, int | float]:
        """The process's own numbers as they are reported: sums of the run, newest values."""
        return {f"{METRICS}{name}": n for name, n in (self.counters | self.gauges).items()}
