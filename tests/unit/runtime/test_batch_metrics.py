"""The figures of a batch, from its own result and from what Spark reports."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rivermark.runtime.batch_metrics import BatchResult, batch_metrics

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
PROGRESS: dict[str, Any] = {
    "batchId": 7,
    "timestamp": "2026-03-02T12:00:00.000Z",
    "batchDuration": 250,
    "sources": [
        {"description": "DeltaSource[file:/lake/a]", "numInputRows": 10},
        {"description": "RateStreamV2[...]", "numInputRows": 1},
    ],
    "stateOperators": [
        {"numRowsTotal": 3, "memoryUsedBytes": 64, "numRowsDroppedByWatermark": 2},
        {"numRowsTotal": 1, "memoryUsedBytes": 8, "customMetrics": {"numDroppedDuplicateRows": 5}},
    ],
    "eventTime": {"watermark": "2026-03-02T11:59:00.000Z"},
}


def test_what_the_result_does_not_say_is_taken_from_sparks_report() -> None:
    metrics = batch_metrics(("taxi/rides", 2, "run"), PROGRESS, BatchResult(rows_out=4))

    assert (metrics.stream, metrics.generation, metrics.run_id) == ("taxi/rides", 2, "run")
    assert (metrics.batch_id, metrics.started_at, metrics.duration_ms) == (7, NOON, 250)
    assert (metrics.rows_in, metrics.rows_out) == (10, 4), "the clock's rows are no input"
    assert metrics.watermark == NOON.replace(hour=11, minute=59)
    assert (metrics.state_rows, metrics.state_bytes) == (4, 72)
    assert (metrics.dropped_by_watermark, metrics.duplicates) == (2, 5)
    assert (metrics.admitted, metrics.files) == (None, None)


def test_the_result_comes_before_sparks_report() -> None:
    result = BatchResult(rows_in=0, watermark=NOON, state_rows=0, duration_ms=9, counters={"n": 1})

    metrics = batch_metrics(("taxi/rides", 2, "run"), PROGRESS, result)

    assert (metrics.rows_in, metrics.watermark) == (0, NOON)
    assert (metrics.state_rows, metrics.duration_ms, metrics.counters) == (0, 9, {"n": 1})


def test_the_epoch_is_no_watermark() -> None:
    progress = PROGRESS | {"eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}}

    assert batch_metrics(("taxi/rides", 2, "run"), progress, BatchResult()).watermark is None
