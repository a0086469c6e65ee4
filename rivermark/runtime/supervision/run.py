"""Running streams: until what is there is drained, or until somebody says stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Final, Literal

from pyspark.sql import SparkSession

from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.checkpoint.closed_days import ClosedDays
from rivermark.runtime.supervision.file_poller import Poller
from rivermark.runtime.supervision.supervisor import Supervisor
from rivermark.settings import Settings

LOOK_SECONDS: Final = 0.25
"""How often a continuous run looks at its queries."""
FIRST_LOOK_SECONDS: Final = 60.0
"""How long others wait at the start for a query whose first batch has to be alone."""
FIRST_BATCHES: Final = 2
"""How many queries may run when one whose first batch starts a Python process is begun in a bounded
run: the process has ten seconds to answer, and needs half a second of one core."""
DRAIN_SECONDS: Final = 0.05
"""How often a bounded run looks whether a query has ended: the next one waits for it."""


@dataclass(frozen=True)
class Report:
    """What a stream did since its last report; numbers as in the asset's metadata.

    `closed_days` are days that became final (or were computed again) since the last report.
    """

    stream: str
    at: datetime
    kind: Literal["progress", "final"]
    numbers: dict[str, int | float]
    watermark: datetime | None = None
    closed_days: tuple[date, ...] = ()
    pending: tuple[str, ...] = ()


OnReport = Callable[[Report], None]


@dataclass
class _Reporter:
    """Turns running totals into reports of what is new."""

    supervisor: Supervisor
    on_report: OnReport | None
    closing: ClosedDays
    _before: dict[str, tuple[int, int, int, float]] = field(default_factory=dict)
    _began: float = field(default_factory=time.monotonic)

    def report(self, stream: AnyStream, kind: Literal["progress", "final"]) -> None:
        """Report one stream, if anybody listens."""
        summary = self.supervisor.summaries[stream.name]
        closed = self.closing.newly_closed(stream, summary)
        if self.on_report is None:
            return
        before = self._before.get(stream.name, (0, 0, 0, self._began))
        now = time.monotonic()
        self._before[stream.name] = (summary.rows_in, summary.rows_out, summary.batches, now)
        rows_in = summary.rows_in - before[0]
        lag = (datetime.now(UTC) - summary.watermark).total_seconds() if summary.watermark else None
        numbers: dict[str, int | float] = {
            "rows_in": rows_in,
            "rows_out": summary.rows_out - before[1],
            "rows_per_second": round(rows_in / max(now - before[3], 0.001), 3),
            "batches": summary.batches - before[2],
            "batch_ms": summary.batch_ms,
            "late": summary.late,
            "quarantined": summary.quarantined,
            "duplicates": summary.duplicates,
            "state_rows": summary.state_rows,
            "state_bytes": summary.state_bytes,
            # Spark freezes it at the first start; settings changed since need a new checkpoint.
            "shuffle_partitions": self.supervisor.hosts[stream.name].generation.shuffle_partitions,
        }
        numbers |= summary.metrics()
        if lag is not None:
            numbers["watermark_lag_seconds"] = round(lag, 3)
        pending = tuple(pending_of(self.supervisor, stream))
        self.on_report(
            Report(
                stream.name, datetime.now(UTC), kind, numbers, summary.watermark, closed, pending
            )
        )


def run_bounded(
    spark: SparkSession,
    settings: Settings,
    topology: Topology,
    streams: Sequence[AnyStream],
    *,
    run_id: str,
    on_report: OnReport | None = None,
    stop: threading.Event | None = None,
) -> dict[str, StreamSummary]:
    """Drain what is there through the streams, in dependency order, then end.

    Streams that do not read each other run side by side; each starts when all that it reads are
    done, and is reported when it is done itself. Windows that the watermark has not passed
    stay open, in state, for the next run; the summary says so. Raises StreamFailed with the first
    query's own error after the others were stopped, and StreamAlreadyRunning.
    """
    with Supervisor(spark, settings, streams, run_id) as supervisor:
        reporter = _Reporter(supervisor, on_report, ClosedDays(settings.lake(), settings.state))
        waiting = [s for level in levels(topology, streams) for s in level]
        unfinished = {s.name for s in waiting}
        while unfinished:
            ready = [s for s in waiting if _ready(topology, s, unfinished)]
            ready = _startable(supervisor, ready, beside=len(unfinished) - len(waiting))
            supervisor.settle([s.name for s in ready])
            for stream in ready:
                waiting.remove(stream)
                supervisor.start(stream.name, bounded=True)
            if stop is not None and stop.is_set():
                return supervisor.summaries
            _step(supervisor, DRAIN_SECONDS)
            started = [s for s in supervisor.streams if s.name in unfinished and s not in waiting]
            ended = [s for s in started if not _active(supervisor, s)]
            again = supervisor.look()
            ended = [s for s in ended if s.name not in again]
            _wait_for_last_reports(supervisor, ended)
            for stream in ended:
                unfinished.remove(stream.name)
                supervisor.finished(stream.name)
                reporter.report(stream, "final")
                _note_pending(supervisor, stream)
    return supervisor.summaries


def run_continuous(
    spark: SparkSession,
    settings: Settings,
    topology: Topology,
    streams: Sequence[AnyStream],
    *,
    run_id: str,
    stop: threading.Event,
    on_report: OnReport | None = None,
    report_every: timedelta = timedelta(seconds=60),
) -> dict[str, StreamSummary]:
    """Run the streams together until `stop` is set; then stop each between two batches.

    Reports every stream every `report_every`, and once at the end. Raises as run_bounded does.
    """
    with Supervisor(spark, settings, streams, run_id) as supervisor:
        reporter = _Reporter(supervisor, on_report, ClosedDays(settings.lake(), settings.state))
        ordered = [s for level in levels(topology, streams) for s in level]
        alone = {n: h.trigger.first_batch_alone for n, h in supervisor.hosts.items()}
        for stream in sorted(ordered, key=lambda s: not alone[s.name]):
            supervisor.start(stream.name, bounded=False)
            if alone[stream.name]:
                _wait_for_first_look(supervisor, stream)
        supervisor.beat(force=True)
        due = time.monotonic() + report_every.total_seconds()
        with Poller(supervisor.backlogs()) as poller:
            while not stop.is_set():
                _step(supervisor, LOOK_SECONDS)
                if poller.failed is not None:
                    name, error = poller.failed
                    raise supervisor.fail(name, error) from error
                if time.monotonic() >= due:
                    due = time.monotonic() + report_every.total_seconds()
                    for stream in ordered:
                        reporter.report(stream, "progress")
        supervisor.stop_all()
        _wait_for_last_reports(supervisor, ordered)
        for stream in ordered:
            reporter.report(stream, "final")
            _note_pending(supervisor, stream)
    return supervisor.summaries


def levels(topology: Topology, streams: Iterable[AnyStream]) -> list[list[AnyStream]]:
    """The streams in steps: each step reads only what earlier steps (or other runs) write."""
    wanted = {s.name for s in streams}
    depth: dict[str, int] = {}
    for stream in topology.streams:
        if stream.name in wanted:
            above = [depth[u.name] for u in topology.upstreams(stream) if u.name in depth]
            depth[stream.name] = 1 + max(above, default=-1)
    steps: list[list[AnyStream]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for stream in topology.streams:
        if stream.name in depth:
            steps[depth[stream.name]].append(stream)
    return steps


def _ready(topology: Topology, stream: AnyStream, unfinished: set[str]) -> bool:
    """Whether nothing that the stream reads has still to run in this run."""
    return not any(u.name in unfinished for u in topology.upstreams(stream))


def _startable(
    supervisor: Supervisor, ready: Sequence[AnyStream], *, beside: int
) -> list[AnyStream]:
    """Which of the streams to start: first all that run side by side, then the others in pairs.

    `beside` is the number of queries that run now.
    """
    hosts = supervisor.hosts
    side_by_side = [s for s in ready if not hosts[s.name].trigger.first_batch_alone]
    return side_by_side or list(ready[: max(FIRST_BATCHES - beside, 0)])


def _active(supervisor: Supervisor, stream: AnyStream) -> bool:
    query = supervisor.hosts[stream.name].query
    return query is not None and bool(query.isActive)


def _step(supervisor: Supervisor, pause: float) -> None:
    supervisor.count()
    supervisor.look()
    supervisor.beat()
    time.sleep(pause)


def _wait_for_first_look(supervisor: Supervisor, stream: AnyStream) -> None:
    """Wait until a query has worked off what it found first; others start after it."""
    deadline = time.monotonic() + FIRST_LOOK_SECONDS
    while not supervisor.hosts[stream.name].has_looked() and time.monotonic() < deadline:
        _step(supervisor, LOOK_SECONDS)


def _wait_for_last_reports(supervisor: Supervisor, level: Sequence[AnyStream]) -> None:
    """Wait until Spark has reported every batch that was written: reports come a moment later."""
    deadline = time.monotonic() + 5
    while any(supervisor.hosts[s.name].written for s in level) and time.monotonic() < deadline:
        supervisor.count()
        time.sleep(0.02)


def _note_pending(supervisor: Supervisor, stream: AnyStream) -> None:
    supervisor.summaries[stream.name].pending = pending_of(supervisor, stream)


def pending_of(supervisor: Supervisor, stream: AnyStream) -> list[str]:
    """What waits, in words: files that cannot be read yet, open windows, the slowest input."""
    summary, host = supervisor.summaries[stream.name], supervisor.hosts[stream.name]
    found = host.backlog.describe() if host.backlog else []
    if summary.state_rows:
        past = summary.watermark.isoformat() if summary.watermark else "all that was seen"
        found.append(f"{summary.state_rows} rows of state wait for event time past {past}")
    inputs = sorted(host.watermark.of_inputs().items(), key=lambda item: item[1])
    if summary.state_rows and inputs and inputs[0][1] < inputs[-1][1]:
        stand = ", ".join(f"{name} at {at.isoformat()}" for name, at in inputs)
        found.append(f"its inputs have come to {stand}: results wait for {inputs[0][0]}")
    return found
