"""Running streams: until their input is drained, or until they are stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Self

from pyspark.sql import SparkSession

from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.supervision.report import OnReport, Reporter
from rivermark.runtime.supervision.supervisor import Supervisor
from rivermark.settings import Settings

STEP_SECONDS: Final = 0.25
"""How often a continuous run looks at its queries."""
FIRST_TRIGGER_SECONDS: Final = 60.0
"""How long others wait at the start for a query whose first batch has to be alone."""
FIRST_BATCH_SECONDS: Final = 10.0
"""How long others wait at the start for the first batches of the streams that read none of them."""
DRAIN_SECONDS: Final = 0.05
"""How often a bounded run looks whether a query has ended: the next one waits for it."""


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

    Streams that do not read each other run side by side; each starts when all that it reads have
    ended, and is reported when it has ended itself. Windows that the watermark has not passed stay
    open, in state, for the next run; the summary says so. A stream that fails is started again by
    the restart strategy that it declares; when that gives up, the others go on, those that read it
    drain what is there, and the run then raises StreamFailed with the first stream's own error.
    Raises StreamAlreadyRunning before anything is started.
    """
    with Supervisor(spark, settings, streams, run_id, bounded=True) as supervisor:
        reporter = Reporter(supervisor, on_report)
        alone = [n for n, h in supervisor.hosts.items() if h.trigger.first_batch_alone]
        schedule = Schedule.of(topology, streams, alone)
        while not schedule.done:
            ready = schedule.next()
            supervisor.start(*ready)
            schedule = schedule.started(ready)
            if stop is not None and stop.is_set():
                break
            _step(supervisor, DRAIN_SECONDS)
            ended = [
                n for n in schedule.order if n in schedule.running and supervisor.runs[n].ended
            ]
            _wait_for_last_reports(supervisor, ended)
            schedule = schedule.finished(ended)
            for name in ended:
                reporter.report(name, "final")
        if failure := supervisor.failure():
            raise failure
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

    Reports every stream every `report_every`, and once at the end. A stream that fails is started
    again by its restart strategy while the others go on. One that has failed for good stays failed
    until the run ends, which is at once where no other stream is left; the run then raises
    StreamFailed with the first stream's own error. Raises StreamAlreadyRunning before anything is
    started.
    """
    with Supervisor(spark, settings, streams, run_id) as supervisor:
        reporter = Reporter(supervisor, on_report)
        schedule = Schedule.of(topology, streams)
        order = schedule.order
        _start_all(supervisor, schedule, stop)
        due = time.monotonic() + report_every.total_seconds()
        while not stop.is_set() and not all(run.ended for run in supervisor.runs.values()):
            _step(supervisor, STEP_SECONDS)
            if time.monotonic() >= due:
                due = time.monotonic() + report_every.total_seconds()
                for name in order:
                    if not stop.is_set():
                        reporter.report(name, "progress")
        supervisor.stop_all()
        _wait_for_last_reports(supervisor, order)
        for name in order:
            reporter.report(name, "final")
        if failure := supervisor.failure():
            raise failure
    return supervisor.summaries


def _start_all(supervisor: Supervisor, schedule: Schedule, stop: threading.Event) -> None:
    """Start every query, unless the run is stopped meanwhile.

    Those first that read no stream of the run: beside the starts of ten others their first batch,
    for which all wait, takes 6 s instead of 2. Then those whose first batch has to be alone, one
    after the other.
    """
    hosts = supervisor.hosts
    alone = [n for n in schedule.order if n in hosts and hosts[n].trigger.first_batch_alone]
    first = [n for n in schedule.order if not schedule.upstream[n] and n not in alone]
    others = [n for n in schedule.order if n not in {*first, *alone}]
    waits = [(first, FIRST_BATCH_SECONDS), *(([name], FIRST_TRIGGER_SECONDS) for name in alone)]
    for names, seconds in waits:
        supervisor.start(*names)
        deadline = time.monotonic() + seconds
        started = [hosts[name] for name in names if name in hosts]
        while not all(host.has_looked() for host in started) and time.monotonic() < deadline:
            if stop.is_set():
                return
            _step(supervisor, STEP_SECONDS)
    supervisor.start(*others)


def _step(supervisor: Supervisor, pause: float) -> None:
    supervisor.count()
    supervisor.observe()
    time.sleep(pause)


def _wait_for_last_reports(supervisor: Supervisor, names: Sequence[str]) -> None:
    """Wait until Spark has reported every batch that was written: reports come a moment later."""
    hosts = [supervisor.hosts[n] for n in names if n in supervisor.hosts]
    deadline = time.monotonic() + 5
    while any(host.written for host in hosts) and time.monotonic() < deadline:
        supervisor.count()
        time.sleep(0.02)


FIRST_BATCHES: Final = 3
"""How many queries may run when one whose first batch starts a Python process is started: the
process has ten seconds to answer, and needs a quarter of a second of one core."""


@dataclass(frozen=True)
class Schedule:
    """The state of a bounded run: streams that wait, run and have ended, by name.

    A stream starts when all that it reads within the run has ended, drained or failed: behind a
    stream that failed, what its table holds is still drained. `order` lists upstream streams first;
    `alone` are streams whose first batch must not share the machine with many others. A schedule is
    a value: each step returns the next one.
    """

    order: tuple[str, ...]
    upstream: Mapping[str, frozenset[str]]
    alone: frozenset[str] = frozenset()
    running: frozenset[str] = frozenset()
    ended: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, topology: Topology, streams: Iterable[AnyStream], alone: Collection[str] = ()
    ) -> Self:
        """The schedule of a run of these streams, before the first start."""
        names = {s.name for s in streams}
        upstream = {
            s.name: frozenset(u.name for u in topology.upstreams(s)) & names
            for s in topology.streams
            if s.name in names
        }
        return cls(tuple(upstream), upstream, frozenset(alone))

    @property
    def done(self) -> bool:
        """True if every stream has ended."""
        return self.ended.issuperset(self.order)

    def next(self) -> tuple[str, ...]:
        """The streams to start now.

        First all that may run side by side, then those of `alone`, few at a time.
        """
        ready = [
            name
            for name in self.order
            if name not in self.running | self.ended and self.upstream[name] <= self.ended
        ]
        side_by_side = tuple(name for name in ready if name not in self.alone)
        return side_by_side or tuple(ready[: max(FIRST_BATCHES - len(self.running), 0)])

    def started(self, names: Iterable[str]) -> Self:
        """The schedule after these streams were started."""
        return replace(self, running=self.running.union(names))

    def finished(self, names: Iterable[str]) -> Self:
        """The schedule after these streams have ended, drained or failed."""
        names = frozenset(names)
        return replace(self, running=self.running - names, ended=self.ended | names)
