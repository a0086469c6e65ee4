"""What the dashboard tells, gathered from the lake and the state folder. Starts no JVM.

Counts, moments and names of tables, columns and files only: no value of any row is read, so none of
a personal column can be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from rivermark.backfill.registry import newest_records
from rivermark.lake.log import CommitLog
from rivermark.lake.snapshot import opened
from rivermark.lake.sql import ask
from rivermark.model.stream import AnyStream, Ingest
from rivermark.model.table import Table
from rivermark.model.topology import Topology
from rivermark.monitor.checks.history import Look, newest_looks
from rivermark.monitor.checks.liveness import SILENCE
from rivermark.monitor.completeness.checks import judged, judged_downstream
from rivermark.monitor.completeness.derived_day import DerivedDay
from rivermark.monitor.completeness.ingest_day import Day
from rivermark.monitor.late_statistics import Lateness, lateness_of_rows
from rivermark.monitor.lateness_proposal import Proposal, propose_lateness
from rivermark.monitor.process_metrics import metrics_of_streams
from rivermark.monitor.watermarks import marks
from rivermark.quality.gx.offline_docs import StoredRun, stored_runs
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import ENDED, HeartbeatStore
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings

YEAR: Final = 365
HOURS_BACK: Final = 48
LOOKS: Final = 30
COMMITS_LOOKED_AT: Final = 200
RECOMPUTES: Final = 20
RECENT: Final = timedelta(days=7)

# Runs before the recent ones tell which run is a restart and which the first start.
BATCHES: Final = """
SELECT stream, sum(rows_in)::BIGINT AS rows, sum(duration_ms)::BIGINT AS busy_ms,
       coalesce(sum(rows_in) FILTER (started_at >= $day), 0)::BIGINT AS rows_day,
       count(*) AS batches, max(started_at) AS last_batch,
       count(DISTINCT run_id) FILTER (started_at >= $recent) AS runs,
       min(started_at) < $recent AS older
FROM progress GROUP BY stream
"""
BY_HOUR: Final = """
SELECT stream, date_trunc('hour', started_at) AS hour, sum(rows_in)::BIGINT AS rows
FROM progress WHERE started_at >= $since GROUP BY 1, 2
"""


@dataclass(frozen=True, kw_only=True)
class StreamFacts:
    """A stream as the page shows it; times are UTC. `inflow` is rows by hour of arrival.

    `metrics` are the numbers that a process function gave itself.
    """

    name: str
    group: str
    description: str
    kind: str
    state: str
    zone: str = "UTC"
    rows: int = 0
    rows_day: int = 0
    rows_per_second: float = 0.0
    batches: int = 0
    restarts: int = 0
    last_batch: datetime | None = None
    watermark: datetime | None = None
    inflow: Mapping[datetime, int] = field(default_factory=dict)
    metrics: Mapping[str, int | float] = field(default_factory=dict)
    days: tuple[Day, ...] = ()
    derived_days: tuple[DerivedDay, ...] = ()
    lateness: Lateness | None = None
    proposal: Proposal | None = None


@dataclass(frozen=True)
class TableSize:
    """A table on disk at its newest version; `since` is the oldest version in its log."""

    name: str
    rows: int
    files: int
    bytes: int
    version: int
    since: int


@dataclass(frozen=True)
class Recompute:
    """Days of a table that were computed again, as the register or the commit says.

    `version` is what they became; None where nothing published was touched. `difference` is rows
    added, removed and changed, where it is known.
    """

    table: str
    at: datetime
    version: int | None
    first: str
    last: str
    inputs: str
    run: str
    kind: str = "replaced"
    difference: str = ""


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Everything on the page."""

    at: datetime
    streams: tuple[StreamFacts, ...]
    checks: tuple[tuple[Look, ...], ...]
    recomputes: tuple[Recompute, ...]
    tables: tuple[TableSize, ...]
    suites: tuple[tuple[StoredRun, ...], ...] = ()


def gather(settings: Settings, topology: Topology, now: datetime, *, days: int = YEAR) -> Facts:
    """Look at every stream and table."""
    progress = _progress(settings, now)
    inflow = _inflow(settings, now)
    reached = marks(settings, topology.streams)
    metrics = metrics_of_streams(settings)
    sources = judged(settings, topology, days)
    downstream = judged_downstream(settings, topology, sources, days)
    beats = HeartbeatStore(settings.state).read().latest
    wishes = DesiredStore(settings.state)
    found = []
    for stream in topology.streams:
        batch = progress.get(stream.name, {})
        beat = beats.get(stream.name)
        wish = wishes.get(stream.group).state
        state = "never ran" if beat is None else str(beat.state)
        if beat is not None and beat.state not in ENDED and now - beat.at > SILENCE:
            state = "silent"
        busy = (batch.get("busy_ms") or 0) / 1000
        runs = batch.get("runs") or 0
        live = stream if isinstance(stream, Ingest) and stream.lateness is not None else None
        found.append(
            StreamFacts(
                name=stream.name,
                group=stream.group,
                description=stream.description,
                kind=_kind(stream),
                state=f"{state}; should {'run' if wish == 'run' else 'rest'}",
                zone=stream.days.zone if stream.days else "UTC",
                rows=batch.get("rows") or 0,
                rows_day=batch.get("rows_day") or 0,
                rows_per_second=(batch.get("rows") or 0) / busy if busy else 0.0,
                batches=batch.get("batches") or 0,
                restarts=max(0, runs - (0 if batch.get("older") else 1)),
                last_batch=batch.get("last_batch"),
                # A dump's clock says nothing: it waits for no time to pass.
                watermark=None if _kind(stream) == "dump" else reached.get(stream.name),
                inflow=inflow.get(stream.name, {}),
                metrics=metrics.get(stream.name, {}),
                days=tuple(sources.get(stream.name, ())),
                derived_days=tuple(downstream.get(stream.name, ())),
                lateness=lateness_of_rows(settings, live) if live else None,
                proposal=propose_lateness(settings, live) if live else None,
            )
        )
    tables = [t for stream in topology.streams for t in stream.tables if settings.lake().exists(t)]
    return Facts(
        at=now,
        streams=tuple(found),
        checks=_by_claim(newest_looks(settings, LOOKS)),
        recomputes=_recomputes(settings, tables),
        tables=tuple(size_of(settings, table) for table in tables),
        suites=_by_suite(settings),
    )


def size_of(settings: Settings, table: Table) -> TableSize:
    """Rows, files and bytes of a table, from its log."""
    path = settings.lake().path(table)
    found = DeltaTable(path)
    files = pa.table(found.get_add_actions(flatten=True))
    versions = CommitLog(path).versions()
    return TableSize(
        name=table.name,
        rows=sum(n or 0 for n in files["num_records"].to_pylist()),
        files=files.num_rows,
        bytes=sum(n or 0 for n in files["size_bytes"].to_pylist()),
        version=found.version(),
        since=versions[0] if versions else found.version(),
    )


def _kind(stream: AnyStream) -> str:
    if isinstance(stream, Ingest):
        return "dump" if stream.lateness is None else "ingest"
    return stream.kind


def _progress(settings: Settings, now: datetime) -> dict[str, dict[str, Any]]:
    values = {"day": now - timedelta(days=1), "recent": now - RECENT}
    found = {row["stream"]: row for row in _ask_progress(settings, BATCHES, values)}
    for row in found.values():
        row["last_batch"] = row["last_batch"].astimezone(UTC)
    return found


def _inflow(settings: Settings, now: datetime) -> dict[str, dict[datetime, int]]:
    found: dict[str, dict[datetime, int]] = {}
    for row in _ask_progress(settings, BY_HOUR, {"since": now - timedelta(hours=HOURS_BACK)}):
        found.setdefault(row["stream"], {})[row["hour"].astimezone(UTC)] = row["rows"]
    return found


def _ask_progress(
    settings: Settings, sql: str, values: Mapping[str, object]
) -> list[dict[str, Any]]:
    lake = settings.lake()
    if not lake.exists(STREAM_PROGRESS):
        return []
    rows = opened(lake, STREAM_PROGRESS)
    return ask(sql, {"progress": rows}, values)


def _by_suite(settings: Settings) -> tuple[tuple[StoredRun, ...], ...]:
    """The kept runs of each suite, the newest last."""
    root = settings.home / "quality"
    found: dict[str, list[StoredRun]] = {}
    for run in reversed(stored_runs(root / "results", root / "pages")):
        found.setdefault(run.suite, []).append(run)
    return tuple(tuple(found[suite]) for suite in sorted(found))


def _by_claim(looks: list[Look]) -> tuple[tuple[Look, ...], ...]:
    found: dict[tuple[str, str], list[Look]] = {}
    for look in looks:
        found.setdefault((look.table, look.claim), []).append(look)
    return tuple(tuple(group) for group in found.values())


def _recomputes(settings: Settings, tables: list[Table]) -> tuple[Recompute, ...]:
    """The newest reprocessings on record, and replaced days that only a table's commits tell of."""
    found = [
        Recompute(
            table=record.table,
            at=record.at,
            version=record.version_after,
            first=record.first_day.isoformat(),
            last=record.last_day.isoformat(),
            inputs=_read(record.inputs),
            run=record.run_id,
            kind=record.kind,
            difference=f"{record.added:,} / {record.removed:,} / {record.changed:,}",
        )
        for record in newest_records(settings.lake(), limit=RECOMPUTES)
    ]
    found += [each for table in tables if table.days for each in _by_commits(settings, table)]
    return tuple(sorted(found, key=lambda r: r.at, reverse=True)[:RECOMPUTES])


def _by_commits(settings: Settings, table: Table) -> Iterator[Recompute]:
    """Days that were replaced by somebody who keeps no such record, from the newest commits."""
    log = CommitLog(settings.lake().path(table))
    for commit in islice(log.backwards(), COMMITS_LOOKED_AT):
        days = commit.metadata.get("recompute")
        if not isinstance(days, list) or len(days) != 2 or "reprocessing" in commit.metadata:
            continue
        inputs = commit.metadata.get("inputs")
        yield Recompute(
            table=table.name,
            at=commit.at,
            version=commit.version,
            first=str(days[0]),
            last=str(days[1]),
            inputs=_read(inputs if isinstance(inputs, dict) else {}),
            run=str(commit.metadata.get("run", "")),
        )


def _read(inputs: Mapping[str, object]) -> str:
    return ", ".join(f"{name} at {version}" for name, version in inputs.items())
