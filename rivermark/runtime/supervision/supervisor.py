"""Watches the queries of one run: counts their batches, beats their hearts, notices their death."""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from socket import gethostname
from types import TracebackType
from typing import Literal, Self

from pyspark.sql import SparkSession

from rivermark.lake.schema import create_table
from rivermark.model.errors import StreamFailed
from rivermark.model.stream import AnyStream, inputs_of
from rivermark.runtime.batch_metrics import StreamSummary
from rivermark.runtime.query.base import Backlog, QueryHost
from rivermark.runtime.query.factory import host_for
from rivermark.runtime.spark.session import engine_pid
from rivermark.runtime.supervision.error_classes import explain, is_slow_worker
from rivermark.runtime.supervision.heartbeat import WAITING, Heartbeat, HeartbeatStore
from rivermark.runtime.supervision.lease import Lease
from rivermark.runtime.supervision.progress_log import ProgressLog, Reports
from rivermark.runtime.supervision.scheduler import Pacer
from rivermark.settings import Settings

LOG = logging.getLogger("rivermark")
State = Literal["starting", "running", "idle", "stopping", "stopped", "failed"]
BEAT_SECONDS = 5.0
FLUSH_SECONDS = 10.0
STARTS = 5
"""How often a query is started in one run whose Python process does not come up in time."""


class Supervisor:
    """Holds the leases and hosts of a run's streams, from before the first start to the last stop.

    Use it as a context manager; leaving it stops what still runs and gives the leases back.
    """

    def __init__(
        self, spark: SparkSession, settings: Settings, streams: Iterable[AnyStream], run_id: str
    ) -> None:
        """Remember what to run; nothing is taken yet."""
        self.spark = spark
        self.settings = settings
        self.streams = list(streams)
        self.run_id = run_id
        self.hosts: dict[str, QueryHost] = {}
        self.pacer = Pacer()
        self.summaries = {s.name: StreamSummary(s.name) for s in self.streams}
        self._groups = {s.name: s.group for s in self.streams}
        self._stack = ExitStack()
        self._beats = HeartbeatStore(settings.state)
        self._states: dict[str, State] = {}
        self._progressed: dict[str, datetime] = {}
        self._starts: Counter[str] = Counter()
        self._last_beat = self._last_flush = 0.0
        self._jvm = engine_pid(spark)

    def __enter__(self) -> Self:
        """Take every lease, then open every host; all or nothing."""
        try:
            lake = self.settings.lake()
            for stream in self.streams:
                lease = Lease(self.settings.state, stream.name)
                self._stack.enter_context(lease.acquire(self.run_id, self._jvm))
            self._log = ProgressLog(lake)
            self._reports = Reports()
            self.spark.streams.addListener(self._reports)
            self._stack.callback(self._quietly, self._stop_listening)
            for stream in self.streams:
                # Inputs too: a stream may run before what writes them ever did.
                try:
                    for table in (*inputs_of(stream), *stream.tables):
                        create_table(lake, table)
                except Exception as error:
                    raise self.fail(stream.name, error) from error
            for stream in self.streams:
                self._states[stream.name] = "starting"
                try:
                    host = host_for(self.spark, self.settings, stream, self.run_id)
                except Exception as error:
                    raise self.fail(stream.name, error) from error
                self.hosts[stream.name] = host
                self.summaries[stream.name].watermark = host.watermark.reached()
        except BaseException:
            self._end()
            self._stack.close()
            raise
        return self

    def _end(self) -> None:
        """Say of all that did not fail that it has stopped."""
        for name, state in self._states.items():
            if state != "failed":
                self._states[name] = "stopped"
        self.beat(force=True)

    def _stop_listening(self) -> None:
        self.spark.streams.removeListener(self._reports)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop what runs, write down what was counted, give the leases back."""
        try:
            for name in self.hosts:
                if self._states[name] not in ("failed", "stopped"):
                    self._states[name] = "stopping"
            self._quietly(self.stop_all)
            self._quietly(self.count)
            self._quietly(self._log.flush)
            self._end()
        finally:
            self._stack.close()

    @staticmethod
    def _quietly(step: Callable[[], object]) -> None:
        """Do a step of the way out; an engine that is gone must not hide the first error."""
        try:
            step()
        except Exception as error:
            LOG.warning("while stopping: %s", explain(error).message)

    def start(self, name: str, *, bounded: bool, again: bool = False) -> None:
        """Start a stream's query; `again` where the pacer of the run has its host already."""
        try:
            host = self.hosts[name]
            host.start(bounded=bounded)
            if not (bounded or again):
                self.pacer.add(host)
        except Exception as error:
            raise self.fail(name, error) from error
        self._states[name] = "running"

    def backlogs(self) -> dict[str, Backlog]:
        """The input outside Spark's sources, of the streams that have some."""
        return {n: h.backlog for n, h in self.hosts.items() if h.backlog is not None}

    def settle(self, names: Sequence[str]) -> None:
        """Let ingests take what has landed; all wait together for what is still being written."""
        backlogs = {n: b for n, b in self.backlogs().items() if n in names}
        if not backlogs:
            return
        with ThreadPoolExecutor(len(backlogs), "settle") as threads:
            looks = {name: threads.submit(backlog.settle) for name, backlog in backlogs.items()}
        for name, look in looks.items():
            error = look.exception()
            if error is not None:
                raise self.fail(name, error) from error

    def finished(self, name: str) -> None:
        """Note that a bounded stream has drained its input."""
        self._states[name] = "stopped"

    def stop_all(self) -> None:
        """Stop every query between batches, those that read first."""
        self.pacer.stop()
        for name in reversed(list(self.hosts)):
            self.hosts[name].stop()

    def count(self) -> None:
        """Count the batches that Spark reported since the last call."""
        for progress in self._reports.take():
            name = progress.get("name")
            host = self.hosts.get(name or "")
            if host is None or "batchId" not in progress:
                continue
            touched = host.written.get(int(progress["batchId"]))
            tally = host.metrics(progress)
            summary = self.summaries[host.stream.name]
            if touched is not None:
                summary.touched_days |= touched.touched
                summary.add(tally)
                self._log.add(tally)
                self._progressed[host.stream.name] = datetime.now(UTC)
        if time.monotonic() - self._last_flush > FLUSH_SECONDS:
            self._last_flush = time.monotonic()
            self._log.flush()

    def look(self) -> set[str]:
        """Raise StreamFailed for the first query that ended with an error.

        One whose Python process was only slow to begin is started again, a few times; gives the
        names of those.
        """
        again = set()
        for name, host in self.hosts.items():
            query = host.query
            if query is None or self._states[name] != "running":
                continue
            try:
                error = None if query.isActive else host.error or query.exception()
            except Exception as broken:
                raise self.fail(name, broken) from broken
            if error is None:
                continue
            self._starts[name] += 1
            if not is_slow_worker(error) or self._starts[name] >= STARTS:
                raise self.fail(name, error) from error
            LOG.warning(
                "stream '%s': its Python process was not there in time on this busy machine; "
                "started again (%d of %d)", name, self._starts[name], STARTS - 1
            )  # fmt: skip
            self.start(name, bounded=host.bounded, again=True)
            again.add(name)
        return again

    def fail(self, name: str, error: BaseException) -> StreamFailed:
        """Mark a stream as failed, and say so in its heartbeat at once."""
        host = self.hosts.get(name)
        checkpoint = host.checkpoint if host else "of the stream"
        fault = explain(error, stream=name, checkpoint=checkpoint)
        self.summaries[name].error = fault.message
        self._states[name] = "failed"
        self._restartable = fault.restartable
        self.beat(force=True)
        return StreamFailed(name, fault.message)

    _restartable = True

    def beat(self, *, force: bool = False) -> None:
        """Write every stream's heartbeat, every few seconds."""
        if not force and time.monotonic() - self._last_beat < BEAT_SECONDS:
            return
        self._last_beat = time.monotonic()
        backlogs = self.backlogs()
        for name, state in self._states.items():
            summary = self.summaries[name]
            self._beats.beat(
                Heartbeat(
                    stream=name,
                    group=self._groups[name],
                    run_id=self.run_id,
                    pid=os.getpid(),
                    host=gethostname(),
                    jvm_pid=self._jvm,
                    at=datetime.now(UTC),
                    state=state,
                    batch_id=summary.batches or None,
                    last_progress_at=self._progressed.get(name),
                    watermark=summary.watermark,
                    error=summary.error,
                    restartable=self._restartable,
                    numbers={
                        "rows_in": summary.rows_in,
                        "rows_out": summary.rows_out,
                        "late": summary.late,
                        "quarantined": summary.quarantined,
                        WAITING: backlogs[name].waiting() if name in backlogs else 0,
                    },
                )
            )
