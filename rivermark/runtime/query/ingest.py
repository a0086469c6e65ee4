"""The query of an ingest: arrivals in, the door's four tables out."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final, cast

from pyspark.sql import DataFrame, SparkSession

from rivermark.ingest.admission import Door
from rivermark.ingest.source.arrivals import Lister, Poll
from rivermark.ingest.source.spark_reader import Arrived
from rivermark.lake.log import CommitLog
from rivermark.model.stream import Ingest
from rivermark.runtime.batch_metrics import BatchResult
from rivermark.runtime.query.base import QueryHost, Watermark
from rivermark.runtime.query.trigger_policy import Trigger
from rivermark.settings import Settings

ARRIVALS_PER_TRIGGER: Final = 2
"""How many arrivals make a batch at most; the source's `max_files` and `max_bytes` bound each."""
ARRIVALS_AHEAD: Final = 2
"""How many arrivals a running query may have before it. What lands meanwhile is held, and becomes
one arrival: else a slow batch would leave a row of small ones behind it."""
INGEST_SECONDS: Final = 0.25
"""Seconds between the beginnings of two batches of an ingest at least."""
FULL_LOOK_SECONDS: Final = 30.0
"""How often a running query asks whether files that were read have changed."""


class FileBacklog:
    """Files of the landing folder: `poll` writes those that are complete down as arrivals."""

    def __init__(self, lister: Lister, ingest: Ingest) -> None:
        self.lister = lister
        self.ingest = ingest
        self.running = False
        self.read = lister.arrival
        """The last arrival that a batch has taken."""
        self._last = Poll()
        self._full_look = 0.0

    def poll(self) -> int:
        """Take the files that are ready; while the query runs, as many as it can take soon."""
        if not self.running:
            self._last = self.lister.poll()
            return self._last.taken
        quick = time.monotonic() - self._full_look < FULL_LOOK_SECONDS
        room = max(ARRIVALS_AHEAD - (self.lister.arrival - self.read), 0)
        poll = self.lister.poll(most=room, quick=quick)
        if quick:
            poll.changed = self._last.changed
        else:
            self._full_look = time.monotonic()
        self._last = poll
        return poll.taken

    def settle(self) -> None:
        """Poll until no file is waiting for being quiet; what cannot be read stays waiting."""
        source = self.ingest.source
        longest = max(source.settle, source.unterminated_settle).total_seconds()
        deadline = time.monotonic() + longest + 1
        while True:
            self.poll()
            waits = [w for w in self._last.waiting if not w.reason.startswith("cannot be read")]
            if not waits or time.monotonic() > deadline:
                return
            time.sleep(0.2)

    def waiting(self) -> int:
        """How many files are there and not taken."""
        return len(self._last.waiting) + self._last.held

    def describe(self) -> list[str]:
        """Files that are there and not taken, or not as they are now."""
        held = self._last.held
        lines = [f"{held} files are ready and wait for the batches before them"] if held else []
        files = (*self._last.waiting, *self._last.changed)
        return [*lines, *(f"file {w.path}: {w.reason}" for w in files)]


class IngestWatermark(Watermark):
    """The newest event time that was admitted, less the lateness."""

    def __init__(self, door: Door, ingest: Ingest) -> None:
        self._door = door
        self._lateness = ingest.lateness

    def reached(self) -> datetime | None:
        """The watermark now."""
        newest = self._door.clock.newest
        return newest - self._lateness if newest and self._lateness is not None else newest


class IngestHost(QueryHost):
    """Hosts an ingest: arrivals in, its four tables out."""

    def __init__(
        self, spark: SparkSession, settings: Settings, stream: Ingest, run_id: str
    ) -> None:
        super().__init__(spark, settings, stream, run_id)
        self.door = Door(spark, self.lake, stream, self.origin)
        lister = Lister(self.lake, settings.landing_root, stream, run_id)
        self._arrivals = self.lake.path(lister.table)
        self.backlog = self._files = FileBacklog(lister, stream)
        self.watermark = IngestWatermark(self.door, stream)
        # Sooner than others: every stream waits for admission, and its batches cost little.
        interval = min(INGEST_SECONDS, settings.trigger_seconds)
        self.trigger = Trigger(interval, [self._arrivals])

    def read(self) -> DataFrame:
        """The arrivals, some at a time."""
        self._files.running = True
        reader = self.spark.readStream.format("delta")
        reader = reader.option("maxFilesPerTrigger", str(ARRIVALS_PER_TRIGGER))
        if CommitLog(self._arrivals).complete():
            # In the order of commits; a snapshot would be read by the times of the clock.
            reader = reader.option("startingVersion", "0")
        return reader.load(self._arrivals)

    def write(self, frame: DataFrame, batch: int) -> BatchResult:
        """Take the files of the batch through the door."""
        rows = frame.collect()
        if not rows:
            return BatchResult(rows_in=0)
        files = []
        for row in rows:
            found = row.asDict()
            for name in ("modified_at", "landed_at"):
                found[name] = found[name].astimezone(UTC)
            files.append(Arrived(**cast(dict[str, str], found)))  # type: ignore[arg-type]
        done = self.door.admit(files, batch)
        self._files.read = max(self._files.read, *(f.arrival for f in files))
        return BatchResult(
            rows_in=done.rows,
            rows_out=done.admitted,
            admitted=done.admitted,
            late=done.late,
            quarantined=done.quarantined,
            files=done.files,
            watermark=self.watermark.reached(),
        )
