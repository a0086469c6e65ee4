"""The state of every stream, from heartbeats, records and table statistics; starts no engine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from deltalake import DeltaTable

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.sql import ask
from rivermark.lake.statistics import row_count
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.table import Table
from rivermark.monitor.process_metrics import metrics_of_streams
from rivermark.runtime.supervision.desired_state import Desired, DesiredStore
from rivermark.runtime.supervision.heartbeat import ENDED, Heartbeat, HeartbeatStore, host_alive
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings

SILENCE: Final = timedelta(minutes=1)

FILES: Final = """
SELECT stream, count(*) AS files, sum(rows)::BIGINT AS rows_in, sum(admitted)::BIGINT AS admitted,
       sum(late)::BIGINT AS late, sum(quarantined)::BIGINT AS quarantined
FROM outcomes GROUP BY stream
"""
# The newest generation only: a reset stream counts from nothing again.
BATCHES: Final = """
SELECT stream, sum(rows_in)::BIGINT AS rows_in, max(watermark) AS watermark,
       max(started_at) AS last_batch_at, count(*) AS batches
FROM (SELECT *, max(generation) OVER (PARTITION BY stream) AS newest FROM progress)
WHERE generation = newest GROUP BY stream
"""


@dataclass(frozen=True, kw_only=True)
class StreamState:
    """What is known of one stream. Numbers are totals; times are UTC.

    `admitted`, `late` and `set_aside` are an ingest's; `rows` counts the rows in a derived stream's
    tables. `alive` is None where nothing should be alive or it cannot be told. `metrics` are the
    numbers that a process function gave itself.
    """

    stream: str
    group: str
    state: str
    alive: bool | None
    rows_in: int
    admitted: int | None = None
    late: int | None = None
    set_aside: int | None = None
    rows: int | None = None
    watermark: datetime | None = None
    last_batch_at: datetime | None = None
    error: str | None = None
    metrics: dict[str, int | float] = field(default_factory=dict)


def overview(settings: Settings, streams: Iterable[AnyStream], now: datetime) -> list[StreamState]:
    """The state of each stream."""
    files = _by_stream(settings, INGEST_FILES, "outcomes", FILES)
    batches = _by_stream(settings, STREAM_PROGRESS, "progress", BATCHES)
    beats = HeartbeatStore(settings.state).read()
    metrics = metrics_of_streams(settings)
    lake = settings.lake()
    found = []
    for stream in streams:
        beat = beats.latest.get(stream.name)
        said = beats.unreadable.get(stream.name)
        state, alive = (f"unreadable: {said}", None) if said else life(beat, now)
        batch, door = batches.get(stream.name, {}), files.get(stream.name, {})
        ingest = isinstance(stream, Ingest)
        watermark = batch.get("watermark") or (beat.watermark if beat else None)
        found.append(
            StreamState(
                stream=stream.name,
                group=stream.group,
                state=state,
                alive=alive,
                rows_in=(door if ingest else batch).get("rows_in") or 0,
                admitted=door.get("admitted", 0) if ingest else None,
                late=door.get("late", 0) if ingest else None,
                set_aside=door.get("quarantined", 0) if ingest else None,
                rows=None if ingest else sum(row_count(lake, t) for t in stream.tables),
                watermark=watermark,
                last_batch_at=batch.get("last_batch_at"),
                error=beat.error if beat else None,
                metrics=metrics.get(stream.name, {}),
            )
        )
    return found


def wishes(settings: Settings, groups: Iterable[str]) -> dict[str, Desired]:
    """What is wanted of each group."""
    store = DesiredStore(settings.state)
    return {group: store.get(group) for group in groups}


def life(beat: Heartbeat | None, now: datetime) -> tuple[str, bool | None]:
    """A heartbeat in a few words, and whether its process lives."""
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


def _by_stream(settings: Settings, table: Table, name: str, sql: str) -> dict[str, dict[str, Any]]:
    lake = settings.lake()
    if not lake.exists(table):
        return {}
    rows = DeltaTable(lake.path(table)).to_pyarrow_dataset()
    found = {}
    for row in ask(sql, {name: rows}):
        moments = {k: v.astimezone(UTC) for k, v in row.items() if isinstance(v, datetime)}
        found[str(row["stream"])] = {**row, **moments}
    return found
