"""Hosting streams, from a console or a job: until they are drained, or until they are stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import FrameType
from typing import TYPE_CHECKING, Final

from rivermark.lake.full_disk import is_disk_full
from rivermark.model.errors import RivermarkError
from rivermark.model.source_abilities import MessageSource
from rivermark.model.stream import AnyStream
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.desired_state import Desired, DesiredStore
from rivermark.settings import Settings
from rivermark.sinks.real_time import real_time_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rivermark.runtime.batch_metrics import StreamSummary
    from rivermark.runtime.spark.jvm import Kind
    from rivermark.runtime.supervision.report import OnReport

STOPPING: Final = (signal.SIGINT, signal.SIGTERM)
PAUSE_SECONDS: Final = 2.0
"""How often a live run reads what is desired of its groups."""

OnPause = Callable[[str, Desired], None]


@dataclass(frozen=True, kw_only=True)
class Hosting:
    """Streams to host in one run: drained once, or `continuous` until they are stopped."""

    settings: Settings
    topology: Topology
    streams: Sequence[AnyStream]
    run_id: str
    continuous: bool

    # Spark's modules are slow to import: what needs none of them must not wait for them.

    def session_kind(self) -> Kind:
        """The Spark session that the run needs, by how much waits for it."""
        from rivermark.runtime.query.backlog import kind_of_run

        return "long" if self.continuous else kind_of_run(self.settings, self.streams)

    def real_time_slots(self) -> int:
        """The slots for tasks that queries in real time occupy: one a partition that they read.

        Asks the brokers; BrokersUnreachable where none of them answers.
        """
        sent = [each for stream in self.streams if (each := real_time_of(stream)) is not None]
        sources = [each.ingest.source for each in sent]
        return sum(s.partition_count() for s in sources if isinstance(s, MessageSource))

    def run(
        self,
        spark: SparkSession,
        stop: threading.Event,
        *,
        on_report: OnReport | None = None,
        report_every: timedelta = timedelta(seconds=60),
        paused_since: datetime | None = None,
        on_pause: OnPause = lambda group, desired: None,
    ) -> dict[str, StreamSummary]:
        """Host the streams until they are drained, or `stop` is set, or one's group is paused.

        Only a live run ends by a pause, and with `paused_since` only by one that came after that
        moment (UTC). Raises StreamFailed with the first failed stream's own error, when all others
        have ended, StreamAlreadyRunning, and RivermarkError where a full disk ends the run itself.
        """
        from rivermark.runtime.supervision.error_classes import explain
        from rivermark.runtime.supervision.lineage_record import record_lineage
        from rivermark.runtime.supervision.run import run_bounded, run_continuous

        hosted = (spark, self.settings, self.topology, self.streams)
        try:
            if not self.continuous:
                ran = run_bounded(*hosted, run_id=self.run_id, on_report=on_report, stop=stop)
                if not stop.is_set():
                    record_lineage(spark, self.settings.state, self.streams)
                return ran
            record_lineage(spark, self.settings.state, self.streams)
            with self._stop_on_pause(stop, paused_since, on_pause):
                return run_continuous(
                    *hosted,
                    run_id=self.run_id,
                    stop=stop,
                    on_report=on_report,
                    report_every=report_every,
                )
        except OSError as error:
            if not is_disk_full(error):
                raise
            raise RivermarkError(
                explain(error, checkpoint=self.settings.lake_root).message
            ) from error

    @contextmanager
    def _stop_on_pause(
        self, stop: threading.Event, since: datetime | None, on_pause: OnPause
    ) -> Iterator[None]:
        store, groups = DesiredStore(self.settings.state), sorted({s.group for s in self.streams})
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(PAUSE_SECONDS):
                for group in groups:
                    desired = store.get(group)
                    if desired.paused(since):
                        on_pause(group, desired)
                        stop.set()
                        return

        watcher = threading.Thread(target=watch, name="desired state", daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()


class StopRequest(threading.Event):
    """Asks a run to stop between two batches; `signalled` where a signal asked for it."""

    signalled = False


@contextmanager
def stop_on_signals(interrupt: type[BaseException] = KeyboardInterrupt) -> Iterator[StopRequest]:
    """A request that SIGINT and SIGTERM set; a second signal raises `interrupt` at once.

    Enter it after the Spark session is open: one that is opened in the main thread installs its own
    handler for SIGINT, which kills the jobs of the batch under way. In another thread, where
    handlers cannot be installed, no signal sets it.
    """
    stop = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def request(_number: int, _frame: FrameType | None) -> None:
        if stop.signalled:
            raise interrupt
        stop.signalled = True
        stop.set()

    handlers = {number: signal.signal(number, request) for number in STOPPING}
    try:
        yield stop
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
