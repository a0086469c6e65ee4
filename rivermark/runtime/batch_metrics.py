"""Figures of a batch, joined from its result and from Spark's report, and their sum over a run."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

METRICS: Final = "metrics/"
"""A process's own numbers are reported by their names with this before them."""
WITHOUT_A_DAY: Final = "rows_without_a_day"
"""Counter of a batch: rows that are in no table, since a refreshed table is written by days."""


@dataclass(kw_only=True)
class BatchResult:
    """Result of one batch: what the writing side knows and Spark's report does not say.

    A number that is None is taken from Spark's report.
    """

    rows_in: int | None = None
    rows_out: int = 0
    admitted: int | None = None
    late: int | None = None
    quarantined: int | None = None
    files: int | None = None
    watermark: datetime | None = None
    touched: frozenset[date] = frozenset()
    duration_ms: int | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    counters: dict[str, int] = field(default_factory=dict)
    gauges: dict[str, float] = field(default_factory=dict)


@dataclass(kw_only=True)
class BatchMetrics(BatchResult):
    """One micro-batch of a stream in figures; times are UTC, sizes in bytes, durations in ms.

    `counters` and `gauges` are the metrics that a process function reports by itself.
    """

    stream: str
    generation: int
    run_id: str
    batch_id: int
    started_at: datetime
    rows_in: int = 0
    duration_ms: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    dropped_by_watermark: int = 0
    duplicates: int = 0


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

    def add(self, batch: BatchMetrics) -> None:
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


def batch_metrics(
    identity: tuple[str, int, str], progress: dict[str, Any], result: BatchResult
) -> BatchMetrics:
    """Join Spark's report of a batch with the batch's own result.

    `identity` is the stream's name, its generation and the run's id.
    """
    stream, generation, run_id = identity
    operators = progress.get("stateOperators") or []

    def summed(name: str) -> int:
        return sum(int(o.get(name, 0)) for o in operators)

    watermark = (progress.get("eventTime") or {}).get("watermark")
    custom = [o.get("customMetrics") or {} for o in operators]
    reported = {
        "duration_ms": int(progress.get("batchDuration", 0)),
        "rows_in": _rows_read(progress),
        "watermark": _instant(watermark) if watermark else None,
        "state_rows": summed("numRowsTotal"),
        "state_bytes": summed("memoryUsedBytes"),
        "dropped_by_watermark": summed("numRowsDroppedByWatermark"),
        "duplicates": sum(int(c.get("numDroppedDuplicateRows", 0)) for c in custom),
    }
    own = {name: value for name, value in vars(result).items() if value is not None}
    return BatchMetrics(
        stream=stream,
        generation=generation,
        run_id=run_id,
        batch_id=int(progress["batchId"]),
        started_at=_instant(progress["timestamp"]) or datetime.now(UTC),
        **(reported | own),
    )


def _rows_read(progress: dict[str, Any]) -> int:
    """Rows of input tables; the source that only tells a process function the time is none."""
    tables = [s for s in progress["sources"] if s["description"].startswith("DeltaSource")]
    return sum(int(s["numInputRows"]) for s in tables)


def _instant(text: str) -> datetime | None:
    """An instant of Spark's report; the epoch means that there is none yet."""
    at = datetime.fromisoformat(text.replace("Z", "+00:00")).astimezone(UTC)
    return at if at.year > 1970 else None
