"""The state of every stream, from heartbeats, records and table statistics, without a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.snapshot import open_whole, row_count
from rivermark.lake.sql import query
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.table import Table
from rivermark.monitor.lag import Lag, lags_of
from rivermark.monitor.process_metrics import RECORDED, metrics_of_streams
from rivermark.monitor.watermarks import ProducerProgress, producers_of, watermarks_of
from rivermark.runtime.supervision.desired_state import Desired, DesiredStore
from rivermark.runtime.supervision.heartbeat import ENDED, Heartbeat, HeartbeatStore, host_alive
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings

SILENCE: Final = timedelta(minutes=1)
RECENT: Final = timedelta(days=7)

COUNTED: Final = ("stream", "rows", "admitted", "late", "quarantined")
"""Of the outcomes of files, of which there is one a batch: the sums need no other columns."""
FILES: Final = """
SELECT stream, sum(rows)::BIGINT AS rows_in, sum(admitted)::BIGINT AS admitted,
       sum(late)::BIGINT AS late, sum(quarantined)::BIGINT AS quarantined
FROM outcomes GROUP BY stream
"""
# The newest generation only: a reset stream starts its counts at zero. Runs before the recent ones
# distinguish a restart from the first start.
BATCHES: Final = """
SELECT stream, sum(rows_in)::BIGINT AS rows_in, sum(duration_ms)::BIGINT AS busy_ms,
       coalesce(sum(rows_in) FILTER (started_at >= $day), 0)::BIGINT AS rows_day,
       max(watermark) AS watermark, max(started_at) AS last_batch_at,
       count(DISTINCT run_id) FILTER (started_at >= $recent) AS runs,
       min(started_at) < $recent AS older
FROM (SELECT *, max(generation) OVER (PARTITION BY stream) AS newest FROM progress)
WHERE generation = newest GROUP BY stream
"""


@dataclass(frozen=True, kw_only=True)
class StreamStatus:
    """The state of one stream. Numbers are totals; times are UTC.

    `admitted`, `late` and `quarantined` are an ingest's; `rows` counts the rows in a derived
    stream's tables. `rows_day` came in the last 24 hours, `restarts` happened in the last 7 days.
    `alive` is None where nothing should be alive or it cannot be determined. `metrics` are the
    counters and gauges of a process function. `lag` is that of an ingest whose source has parts,
    `producers` are those of one with a watermark for each.
    """

    stream: str
    group: str
    state: str
    alive: bool | None
    rows_in: int
    admitted: int | None = None
    late: int | None = None
    quarantined: int | None = None
    rows: int | None = None
    rows_day: int = 0
    rows_per_second: float = 0.0
    restarts: int = 0
    watermark: datetime | None = None
    last_batch_at: datetime | None = None
    error: str | None = None
    metrics: Mapping[str, int | float] = field(default_factory=dict)
    lag: Lag | None = None
    producers: tuple[ProducerProgress, ...] = ()


def status_of(
    settings: Settings, streams: Iterable[AnyStream], now: datetime
) -> list[StreamStatus]:
    """The status of each stream.

    The watermark is that of commits and checkpoints, else of the recorded batches or the heartbeat.
    """
    streams = list(streams)
    times = {"day": now - timedelta(days=1), "recent": now - RECENT}
    files = _by_stream(settings, INGEST_FILES, "outcomes", FILES, COUNTED)
    batches = _by_stream(settings, STREAM_PROGRESS, "progress", BATCHES, RECORDED, times)
    watermarks = watermarks_of(settings, streams)
    beats = HeartbeatStore(settings.state).read()
    metrics = metrics_of_streams(settings)
    lags = lags_of(settings, streams)
    lake = settings.lake()
    statuses = []
    for stream in streams:
        ingest = isinstance(stream, Ingest)
        beat, problem = beats.latest.get(stream.name), beats.unreadable.get(stream.name)
        state, alive = (f"unreadable: {problem}", None) if problem else life(beat, now)
        batch, outcomes = batches.get(stream.name, {}), files.get(stream.name, {})
        busy_seconds = (batch.get("busy_ms") or 0) / 1000
        recorded = batch.get("watermark") or (beat.watermark if beat else None)
        statuses.append(
            StreamStatus(
                stream=stream.name,
                group=stream.group,
                state=state,
                alive=alive,
                rows_in=(outcomes if ingest else batch).get("rows_in") or 0,
                admitted=outcomes.get("admitted", 0) if ingest else None,
                late=outcomes.get("late", 0) if ingest else None,
                quarantined=outcomes.get("quarantined", 0) if ingest else None,
                rows=None if ingest else sum(row_count(lake, t) for t in stream.tables),
                rows_day=batch.get("rows_day") or 0,
                rows_per_second=(batch.get("rows_in") or 0) / busy_seconds if busy_seconds else 0.0,
                restarts=max(0, (batch.get("runs") or 0) - (0 if batch.get("older") else 1)),
                watermark=watermarks.get(stream.name, recorded),
                last_batch_at=batch.get("last_batch_at"),
                error=beat.error if beat else None,
                metrics=metrics.get(stream.name, {}),
                lag=lags.get(stream.name),
                producers=producers_of(lake, stream) if isinstance(stream, Ingest) else (),
            )
        )
    return statuses


def desired_states(settings: Settings, groups: Iterable[str]) -> dict[str, Desired]:
    """The desired state of each group."""
    store = DesiredStore(settings.state)
    return {group: store.get(group) for group in groups}


def life(beat: Heartbeat | None, now: datetime) -> tuple[str, bool | None]:
    """A heartbeat in a few words, and whether its process is alive."""
    if beat is None:
        return "never ran", None
    if beat.state in ENDED:
        return beat.state, None
    alive = host_alive(beat)
    silence = now - beat.at
    if alive is False:
        return "dead: its process is gone", False
    if silence > SILENCE:
        return f"silent for {silence.total_seconds():,.0f} s", alive
    return beat.state, True


def _by_stream(
    settings: Settings,
    table: Table,
    name: str,
    sql: str,
    columns: tuple[str, ...],
    values: Mapping[str, object] | None = None,
) -> dict[str, dict[str, Any]]:
    lake = settings.lake()
    if not lake.exists(table):
        return {}
    by_stream = {}
    for row in query(sql, {name: open_whole(lake, table, columns)}, values or {}):
        times = {k: v.astimezone(UTC) for k, v in row.items() if isinstance(v, datetime)}
        by_stream[str(row["stream"])] = {**row, **times}
    return by_stream
