"""The streams of one run: records batches, writes heartbeats, starts failed queries again."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Self

from pyspark.sql import SparkSession

from rivermark.ingest.split_outcomes import INGEST_FILES
from rivermark.lake.fence import fence
from rivermark.lake.maintenance.compaction import join_many
from rivermark.lake.schema import create_table
from rivermark.model.errors import StreamFailed, TableDamaged
from rivermark.model.stream import AnyStream, Stream, inputs_of
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.code_version import code_of
from rivermark.runtime.query.base import QueryHost
from rivermark.runtime.query.factory import host_for
from rivermark.runtime.spark.callbacks import Reports
from rivermark.runtime.spark.session import jvm_pid_of
from rivermark.runtime.supervision.error_classes import Fault, explain
from rivermark.runtime.supervision.file_poller import Poller
from rivermark.runtime.supervision.heartbeat import (
    FAILURES,
    GIVEN_UP,
    WAITING,
    Heartbeat,
    HeartbeatStore,
)
from rivermark.runtime.supervision.lease import Lease
from rivermark.runtime.supervision.lineage_events import LineageEvents
from rivermark.runtime.supervision.live_process import is_zombie, start_of
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS, ProgressLog
from rivermark.runtime.supervision.reset import tables_of
from rivermark.runtime.supervision.stream_run import StreamRun
from rivermark.runtime.supervision.trigger_loop import TriggerLoop
from rivermark.settings import Settings

LOG = logging.getLogger("rivermark")
BEAT_SECONDS: Final = 5.0
FLUSH_SECONDS: Final = 10.0


class Supervisor:
    """Holds the leases and hosts of a run's streams, from before the first start to the last stop.

    Use it as a context manager; leaving it stops what still runs and releases the leases. A stream
    that fails is started again by its restart strategy, with a new host, while the others go on.
    One that has failed for good keeps its last heartbeat and frees its lease: it can be reset or
    run elsewhere while its neighbours run.
    """

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        streams: Iterable[AnyStream],
        run_id: str,
        *,
        bounded: bool = False,
    ) -> None:
        self.spark = spark
        self.settings = settings
        self.streams = list(streams)
        self.run_id = run_id
        self.bounded = bounded
        self.hosts: dict[str, QueryHost] = {}
        self.runs = {s.name: StreamRun(s, bounded) for s in self.streams}
        self.summaries = {s.name: StreamSummary(s.name) for s in self.streams}
        # Now: the source of a module may be another one later.
        self._codes = {s.name: code_of(s) for s in self.streams if isinstance(s, Stream)}
        self._failures: list[StreamFailed] = []
        self._wanted: set[str] = set()
        self._triggers = TriggerLoop()
        self._poller = Poller()
        self._stack = ExitStack()
        self._leases = {s.name: Lease(settings.state, s.name) for s in self.streams}
        self._heartbeats = HeartbeatStore(settings.state)
        self._progressed: dict[str, datetime] = {}
        self._waiting_since: dict[str, datetime] = {}
        self._beating = threading.Lock()
        self._last_flush = 0.0
        self._jvm = jvm_pid_of(spark)
        self._jvm_start = start_of(self._jvm) if self._jvm is not None else None
        self._started = start_of(os.getpid())

    def __enter__(self) -> Self:
        """Take every lease, all or none (StreamAlreadyRunning), then open every host."""
        try:
            for lease in self._leases.values():
                self._stack.enter_context(lease.acquire(self.run_id, self._jvm))
            self._stack.enter_context(self._heartbeat_thread())
            self._log = ProgressLog(self.settings.lake())
            self._lineage = LineageEvents(self.settings)
            self._stack.callback(self._quietly, self._lineage.close)
            self._reports = Reports(self.spark)
            self.spark.streams.addListener(self._reports)
            self._stack.callback(self._quietly, self._stop_listening)
            for stream in self.streams:
                try:
                    self._open(stream)
                except Exception as error:
                    self._fail(stream.name, error)
        except BaseException:
            self._end()
            self._stack.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop what runs, write down what was counted and what ended it, release the leases."""
        try:
            for name, run in self.runs.items():
                if not run.ended:
                    run.state = "stopping"
                    if isinstance(error, Exception) and not isinstance(error, StreamFailed):
                        self.summaries[name].error = self._explain(name, error).message
            self._quietly(self.stop_all)
            self._quietly(self.count)
            self._quietly(self._log.flush)
            self._end()
        finally:
            self._stack.close()

    def start(self, *names: str) -> None:
        """Start these streams' queries, but those that have failed for good already.

        In a bounded run, input outside Spark's sources is taken up first; streams wait together for
        what is still being written.
        """
        self._wanted.update(names)
        runs = {n: self.runs[n] for n in names}
        opened = [n for n, run in runs.items() if run.state == "starting" and not run.start_at]
        for name, error in self._settle(opened).items():
            self._fail(name, error)
            opened.remove(name)
        for name in opened:
            self._start(name)

    def observe(self) -> None:
        """Find queries that have ended, and start those again whose restart is due.

        Raises StreamFailed where the Spark session is gone: then every query has ended.
        """
        for name, error in self._poller.failures().items():
            self._fail(name, error)
        for name, run in self.runs.items():
            if run.state == "running":
                self._check_query(name, run)
            elif name in self._wanted and run.start_at and run.start_at <= datetime.now(UTC):
                self._start_again(name, run)

    def stop_all(self) -> None:
        """Stop every query between batches, those that read first."""
        self._poller.stop()
        self._triggers.stop()
        for name in reversed(list(self.hosts)):
            self.hosts[name].stop()

    def failure(self) -> StreamFailed | None:
        """The first stream that failed for good, with its own error; it names further ones."""
        if not self._failures:
            return None
        first, *others = self._failures
        if others:
            names = ", ".join(f"'{other.stream}'" for other in others)
            first = StreamFailed(first.stream, f"{first.reason}; also failed: {names}")
        first.__cause__ = self.runs[first.stream].cause
        return first

    def count(self) -> None:
        """Record the batches that Spark has reported since the last call."""
        for progress in self._reports.take():
            host = self.hosts.get(progress.get("name") or "")
            if host is None or "batchId" not in progress:
                continue
            result = host.written.get(int(progress["batchId"]))
            metrics = host.metrics(progress)
            if result is not None:
                name = host.stream.name
                self.summaries[name].touched_days |= result.touched
                self.summaries[name].add(metrics)
                self.summaries[name].error = None
                self.runs[name].progressed()
                self._log.add(metrics)
                self._lineage.batch(host.stream, metrics)
                self._progressed[name] = datetime.now(UTC)
                self._waiting_since.pop(name, None)
        if time.monotonic() - self._last_flush > FLUSH_SECONDS:
            self._last_flush = time.monotonic()
            # A disk that is full must not end streams that it does not stop; it is tried again.
            self._quietly(self._log.flush)
            self._quietly(self._join_records)

    def beat(self) -> None:
        """Write the heartbeat of every stream that has not failed."""
        for name, run in self.runs.items():
            if run.state != "failed":
                self._beat(name, run)

    @contextmanager
    def _heartbeat_thread(self) -> Iterator[None]:
        """Beat every few seconds, whatever the run waits for: a start, a sink that is away."""
        ended = threading.Event()

        def beat_on() -> None:
            while True:
                self._quietly(self.beat)
                if ended.wait(BEAT_SECONDS):
                    return

        thread = threading.Thread(target=beat_on, name="heartbeats", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _join_records(self) -> None:
        """Keep few files of what each batch adds a file to, which every status reads."""
        for table in (INGEST_FILES, STREAM_PROGRESS):
            # What is damaged is told by who reads or writes it.
            with suppress(TableDamaged):
                if self.settings.lake().exists(table):
                    join_many(self.settings.lake().path(table), self.run_id)

    def _open(self, stream: AnyStream) -> None:
        """A new host of the stream, as for each start: none keeps what a failed one remembered."""
        name, lease = stream.name, self._leases[stream.name]
        self.runs[name].attempt(datetime.now(UTC))
        lease.check()
        lake = self.settings.lake()
        existed = any(lake.exists(table) for table in stream.tables)
        # Inputs too: a stream may run before what writes them ever did.
        for table in (*inputs_of(stream), *stream.tables):
            create_table(self.settings.lake(), table)
        if lease.fences and existed:
            for table in (*tables_of(stream), INGEST_FILES):
                fence(self.settings.lake(), table, name, lease.token)
            lease.fences = False
        host = host_for(self.spark, self.settings, stream, self.run_id, lease.check)
        if name in self.hosts:
            # Spark reports a batch a moment after it is written.
            host.written = self.hosts[name].written
        self.hosts[name] = host
        self.summaries[name].watermark = host.watermark.reached()

    def _settle(self, names: Sequence[str]) -> dict[str, BaseException]:
        backlogs = {n: b for n in names if (b := self.hosts[n].backlog) is not None}
        if not self.bounded or not backlogs:
            return {}
        with ThreadPoolExecutor(len(backlogs), "settle") as threads:
            settled = {name: threads.submit(backlog.settle) for name, backlog in backlogs.items()}
        errors = {name: each.exception() for name, each in settled.items()}
        return {name: error for name, error in errors.items() if error is not None}

    def _start(self, name: str) -> None:
        host = self.hosts[name]
        try:
            host.start(bounded=self.bounded)
            if not self.bounded:
                self._triggers.add(host)
                if host.backlog is not None:
                    self._poller.add(name, host.backlog)
        except Exception as error:
            self._fail(name, error)
            return
        self.runs[name].state = "running"

    def _start_again(self, name: str, run: StreamRun) -> None:
        LOG.warning("stream '%s' is started again after: %s", name, run.fault and run.fault.message)
        try:
            self._open(run.stream)
        except Exception as error:
            self._fail(name, error)
            return
        self.start(name)

    def _check_query(self, name: str, run: StreamRun) -> None:
        host = self.hosts[name]
        try:
            self._leases[name].check()
            if host.query is None or host.query.isActive:
                return
            error = host.error or host.query.exception()
        except Exception as broken:
            error = broken
        if error is not None:
            self._fail(name, error)
        elif self.bounded:
            run.state = "stopped"

    def _fail(self, name: str, error: BaseException) -> None:
        """Record a failure: the stream is started again later, or has failed for good."""
        run, host = self.runs[name], self.hosts.get(name)
        fault = self._explain(name, error)
        run.failed(error, fault, datetime.now(UTC))
        self.summaries[name].error = fault.message
        if host is not None:
            self._poller.remove(name)
            self._triggers.remove(host)
        if fault.session_lost:
            run.state = "failed"
        elif host is not None:
            self._quietly(host.stop)
        self._beat(name, run)
        if run.state == "failed":
            self._leases[name].release()
            self._failures.append(StreamFailed(name, fault.message))
        if fault.session_lost or (fault.needs_new_run and not self.bounded):
            raise self._failures[-1] from error

    def _explain(self, name: str, error: BaseException) -> Fault:
        host = self.hosts.get(name)
        place = host.checkpoint if host else "of the stream"
        return explain(error, stream=name, checkpoint=place, engine_lives=self._engine_lives())

    def _engine_lives(self) -> bool:
        """Returns True if the JVM of the session is there, as far as it is known."""
        if self._jvm is None or self._jvm_start is None:
            return True
        return start_of(self._jvm) == self._jvm_start and not is_zombie(self._jvm)

    def _beat(self, name: str, run: StreamRun) -> None:
        """Write a stream's heartbeat, unless another run has taken the stream over."""
        with self._beating:
            if self._leases[name].current:
                self._heartbeats.beat(self._heartbeat(name, run))

    def _heartbeat(self, name: str, run: StreamRun) -> Heartbeat:
        summary, host = self.summaries[name], self.hosts.get(name)
        waiting = self._waiting(name, host)
        return Heartbeat(
            stream=name,
            group=run.stream.group,
            run_id=self.run_id,
            pid=os.getpid(),
            start=self._started,
            jvm_pid=self._jvm,
            state=run.state,
            batch_id=summary.batches or None,
            last_progress_at=self._progressed.get(name),
            waiting_since=self._waiting_since.get(name),
            watermark=summary.watermark,
            error=summary.error,
            cause=run.fault.cause if run.fault else None,
            restartable=run.fault is None or run.fault.restartable,
            numbers={
                "rows_in": summary.rows_in,
                "rows_out": summary.rows_out,
                "late": summary.late,
                "quarantined": summary.quarantined,
                WAITING: waiting,
                FAILURES: run.failures,
                **({GIVEN_UP: 1} if run.given_up else {}),
            },
            code=self._codes.get(name),
        )

    def _waiting(self, name: str, host: QueryHost | None) -> int:
        """The amount of input that waits for a batch of the stream to end."""
        waiting = 0
        if host is not None and not self.bounded:
            waiting = host.backlog.waiting() if host.backlog else self._triggers.unread(host)
            # What a batch under way has taken waits for it to end.
            waiting = max(waiting, int(host.busy))
        if waiting:
            self._waiting_since.setdefault(name, datetime.now(UTC))
        else:
            self._waiting_since.pop(name, None)
        return waiting

    def _end(self) -> None:
        """Mark every stream that did not fail as stopped."""
        for run in self.runs.values():
            if run.state != "failed":
                run.state = "stopped"
        self.beat()

    def _stop_listening(self) -> None:
        self.spark.streams.removeListener(self._reports)

    @staticmethod
    def _quietly(step: Callable[[], object]) -> None:
        """Do a step whose failure must not hide another error, or end what goes on."""
        try:
            step()
        except Exception as error:
            LOG.warning("%s: %s", getattr(step, "__qualname__", step), explain(error).message)
