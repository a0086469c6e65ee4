"""Plots of what streams did: over time, of what there is, of nothing that says nothing."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rivermark.html.chart import Chart, Ranking
from rivermark.lake.schema import create_table
from rivermark.lake.system_tables import append_rows
from rivermark.monitor.dashboard.history import Bucket, History, charts_of_history, history_of
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings

NOW = datetime(2026, 3, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)


def buckets(*rows: tuple[int, int, float | None]) -> dict[datetime, Bucket]:
    return {
        NOW + n * HOUR: Bucket(valid, valid - late, late, lag)
        for n, (valid, late, lag) in enumerate(rows)
    }


def test_batches_are_summed_up_by_time_and_their_longest_lag_kept(settings: Settings) -> None:
    rows = [
        {
            "stream": "shop/orders",
            "started_at": NOW - timedelta(days=2) + n * HOUR / 4,
            "duration_ms": 2_000,
            "rows_in": 10,
            "admitted": 9,
            "late": 1,
            "watermark": NOW - timedelta(days=2) + n * HOUR / 4 - timedelta(seconds=n),
        }
        for n in range(8)
    ]
    before = {**rows[0], "started_at": NOW - timedelta(days=8), "rows_in": 1_000}
    create_table(settings.lake(), STREAM_PROGRESS)
    append_rows(settings.lake(), STREAM_PROGRESS, [*rows, before], {})

    history = history_of(settings, NOW)

    series = history.by_stream["shop/orders"]
    assert history.step == timedelta(minutes=2)
    assert sum(bucket.rows for bucket in series.values()) == 80
    assert [bucket.lag for _, bucket in sorted(series.items())] == [2 + n for n in range(8)]


def test_a_home_without_batches_has_no_plots(settings: Settings) -> None:
    assert charts_of_history(history_of(settings, NOW), ["shop/orders"], ["shop/orders"]) == []


def test_there_is_a_plot_of_each_thing_that_happened() -> None:
    history = History(
        HOUR,
        {
            "a": buckets((100, 0, 10.0), (50, 5, 90.0), (0, 0, 2e8)),
            "b": buckets((10, 0, None), (10, 0, None)),
            "archive": buckets((5, 0, 2e8)),
            "derived": buckets((99, 0, 1.0)),
        },
    )

    throughput, lag, late = charts_of_history(history, ["a", "b", "archive"], ["a", "b"])

    assert isinstance(throughput, Chart)
    assert list(throughput.legend.values()) == ["a", "b", "archive"]
    assert "at most 115" in throughput.label
    assert lag.title == "Watermark lag"
    assert isinstance(lag, Chart)
    assert "at most 1.5 min" in lag.label
    assert isinstance(late, Chart)
    assert "at the end 10 %" in late.label


def test_where_all_came_at_once_late_rows_are_ranked_by_ingest() -> None:
    history = History(HOUR, {"a": buckets((100, 2, None)), "b": buckets((100, 4, None))})

    _, late = charts_of_history(history, ["a", "b"], [])

    assert isinstance(late, Ranking)
    assert [(rank.name, rank.value) for rank in late.ranks] == [("b", "4 %"), ("a", "2 %")]
    assert late.ranks[1].share == pytest.approx(0.5)
