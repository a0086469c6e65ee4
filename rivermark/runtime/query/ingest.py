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
from rivermark.runtime.query.base import QueryHost, Written
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


class IngestHost(QueryHost):
    """Hosts an ingest. `poll` looks into the landing folder and writes new arrivals down."""

    def __init__(
        self, spark: SparkSession, settings: Settings, stream: Ingest, run_id: str
    ) -> None:
        """Open the door and the lister."""
        super().__init__(spark, settings, stream, run_id)
        self.ingest = stream
        self.door = Door(spark, self.lake, stream, self.origin)
        self.lister = Lister(self.lake, settings.landing_root, stream, run_id)
        self.last_poll = Poll()
        self._reached = self.lister.arrival
        self._full_look = 0.0

    def poll(self) -> int:
        """Take the files that are ready; while the query runs, as many as it can take soon."""
        if self.query is None:
            self.last_poll = self.lister.poll()
            return self.last_poll.taken
        quick = time.monotonic() - self._full_look < FULL_LOOK_SECONDS
        room = max(ARRIVALS_AHEAD - (self.lister.arrival - self._reached), 0)
        found = self.lister.poll(most=room, quick=quick)
        if quick:
            found.changed = self.last_poll.changed
        else:
            self._full_look = time.monotonic()
        self.last_poll = found
        return found.taken

    def least_seconds(self) -> float:
        """Sooner than others: everybody waits for the door, and its batches cost little."""
        return min(INGEST_SECONDS, super().least_seconds())

    def watched(self) -> list[str]:
        """The arrivals."""
        return [self.lake.path(self.lister.table)]

    def settle(self) -> None:
        """Poll until no file is waiting for being quiet; what cannot be read stays waiting."""
        source = self.ingest.source
        longest = max(source.settle, source.unterminated_settle).total_seconds()
        deadline = time.monotonic() + longest + 1
        while True:
            self.poll()
            waits = [w for w in self.last_poll.waiting if not w.reason.startswith("cannot be read")]
            if not waits or time.monotonic() > deadline:
                return
            time.sleep(0.2)

    def recalled(self) -> datetime | None:
        """The door's clock, less the lateness."""
        newest, lateness = self.door.clock.newest, self.ingest.lateness
        return newest - lateness if newest and lateness is not None else newest

    def waiting(self) -> int:
        """How many files are there and not taken."""
        return len(self.last_poll.waiting) + self.last_poll.held

    def pending(self) -> list[str]:
        """Files that are there and not taken, or not as they are now."""
        found = [*self.last_poll.waiting, *self.last_poll.changed]
        held = self.last_poll.held
        told = [f"{held} files are ready and wait for the batches before them"] if held else []
        return [*told, *(f"file {w.path}: {w.reason}" for w in found)]

    def frame(self) -> DataFrame:
        """The arrivals, some at a time."""
        path = self.lake.path(self.lister.table)
        reader = self.spark.readStream.format("delta")
        reader = reader.option("maxFilesPerTrigger", str(ARRIVALS_PER_TRIGGER))
        if CommitLog(path).complete():
            # In the order of commits; a snapshot would be read by the times of the clock.
            reader = reader.option("startingVersion", "0")
        return reader.load(path)

    def write(self, frame: DataFrame, batch: int) -> Written:
        """Take the files of the batch through the door."""
        rows = frame.collect()
        if not rows:
            return Written(rows_in=0)
        files = []
        for row in rows:
            found = row.asDict()
            for name in ("modified_at", "landed_at"):
                found[name] = found[name].astimezone(UTC)
            files.append(Arrived(**cast(dict[str, str], found)))  # type: ignore[arg-type]
        done = self.door.admit(files, batch)
        self._reached = max(self._reached, *(f.arrival for f in files))
        return Written(
            rows_in=done.rows,
            rows_out=done.admitted,
            admitted=done.admitted,
            late=done.late,
            quarantined=done.quarantined,
            files=done.files,
            watermark=self.recalled(),
        )
