"""The query of an ingest: planned batches in, the tables of admission out."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rivermark.ingest.admission import Admission
from rivermark.ingest.plan import PLAN_SCHEMA, BatchPlanner, Poll, planned_split
from rivermark.ingest.watermark import Progress
from rivermark.lake.arrow_types import arrow_schema
from rivermark.lake.delta import delta_stream
from rivermark.lake.filesystem import filesystem
from rivermark.lake.integrity.data_file_check import read_file
from rivermark.lake.integrity.log_entry import Actions, read_entry
from rivermark.lake.log import CommitLog
from rivermark.model.errors import RivermarkError
from rivermark.model.sink import owned
from rivermark.model.source import Part
from rivermark.model.stream import Ingest
from rivermark.runtime.batch_metrics import BatchResult
from rivermark.runtime.checkpoint.positions import commits_of_batch
from rivermark.runtime.query.base import QueryHost, Watermark
from rivermark.runtime.query.trigger_policy import Trigger
from rivermark.settings import Settings

PLANNED_PER_TRIGGER: Final = 2
"""How many planned batches make a micro-batch at most; the source's limit bounds each."""
PLANNED_AHEAD: Final = 2
"""How many planned batches a running query may have before it. What comes meanwhile is held, and
becomes one batch: else a slow batch would leave a row of small ones behind it."""
INGEST_SECONDS: Final = 0.25
"""Seconds between the beginnings of two batches of an ingest at least."""
FULL_POLL_SECONDS: Final = 30.0
"""How often a running query checks whether what was read has changed at its source."""


class SourceBacklog:
    """The unplanned content of a source: `poll` plans what is ready.

    `progress` is how far admission has come in event time.
    """

    def __init__(self, planner: BatchPlanner, progress: Callable[[], Progress] = Progress) -> None:
        self.planner = planner
        self._progress = progress
        self.running = False
        self.read = planner.newest
        """The newest planned batch that was read."""
        self._left = True
        self._last = Poll()
        self._parts: Sequence[Part] = ()
        self._full_poll = 0.0

    def poll(self) -> int:
        """Plan what is ready; while the query runs, as many batches as it can take soon."""
        if not self.running:
            self._last = self.planner.poll()
            self._measure()
            return self._last.planned
        full = time.monotonic() - self._full_poll >= FULL_POLL_SECONDS
        room = max(PLANNED_AHEAD - (self.planner.newest - self.read), 0)
        poll = self.planner.poll(most=room, full=full, progress=self._progress())
        if full:
            self._full_poll = time.monotonic()
            self._measure()
        else:
            poll.changed = self._last.changed
        self._last = poll
        return poll.planned

    def _measure(self) -> None:
        try:
            self._parts = self.planner.source.parts(())
        except RivermarkError:
            # As where no broker answers, which the poll itself says.
            self._parts = ()

    def taken(self, batches: Collection[int]) -> None:
        """Note which planned batches a micro-batch has read."""
        self.read = max(self.read, *batches)
        # As many as it may take, or not the newest: others are behind them.
        full = len(batches) >= PLANNED_PER_TRIGGER
        self._left = full or max(batches) < self.planner.newest

    def is_left(self) -> bool:
        """Returns True if planned batches may be left behind what was read last in this run."""
        return self._left or self.read < self.planner.newest

    def settle(self) -> None:
        """Poll until nothing becomes ready by waiting; what cannot be read stays waiting."""
        deadline = time.monotonic() + self.planner.source.settle_time.total_seconds() + 1
        while True:
            self.poll()
            if not any(w.settling for w in self._last.waiting) or time.monotonic() > deadline:
                return
            time.sleep(0.2)

    def waiting(self) -> int:
        """Number of splits known and not planned, but for those that alignment holds back."""
        return len(self._last.waiting) + self._last.held

    def describe(self) -> list[str]:
        """Splits that are not planned, or have changed since they were read."""
        held, unit = self._last.held, self.planner.ingest.source.unit
        lines = [f"{held} {unit}s are ready and wait for the batches before them"] if held else []
        if self._last.aligned:
            ahead = ", ".join(sorted(self._last.aligned))
            lines.append(f"held back until slower producers have followed: {ahead}")
        listed = (*self._last.waiting, *self._last.changed)
        return [*lines, *(f"{unit} {w.path}: {w.reason}" for w in listed)]

    def numbers(self) -> dict[str, int | float]:
        """Records beyond the plan, and how long the oldest has waited, as of the last full poll.

        And how far the fastest producer is ahead of the slowest, where each has a watermark.
        """
        return self._unread() | self._skew()

    def _skew(self) -> dict[str, int | float]:
        rule, producers = self.planner.ingest.watermark, self._progress().producers
        if rule is None or producers is None:
            return {}
        skew = producers.skew(rule.idle)
        return {
            "producers": len(skew),
            "idle_producers": sum(producers.is_idle(name, rule.idle) for name in producers.known),
            "held_back": len(self._last.aligned),
            "skew_seconds": max((each.total_seconds() for each in skew.values()), default=0.0),
        }

    def _unread(self) -> dict[str, int | float]:
        if not self._parts:
            return {}
        now = datetime.now(UTC)
        ages = [(now - p.oldest).total_seconds() for p in self._parts if p.oldest]
        unread = sum(part.records for part in self._parts)
        return {"unread": unread, "oldest_unread_seconds": round(max([0.0, *ages]), 3)}


class IngestWatermark(Watermark):
    """The watermark that the next rows are compared with; of dumps their newest event time."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission

    def reached(self) -> datetime | None:
        """The watermark now."""
        progress, lateness = self._admission.progress, self._admission.ingest.lateness
        return progress.newest if lateness is None else progress.watermark(lateness)


@dataclass
class IngestTrigger(Trigger):
    """Triggered again after a batch for planned batches alone: nothing else waits for a look.

    So a commit of the plan does not come upon a look that finds nothing. And it rests no longer
    than its interval: every other stream waits for what it admits, and its batches cost little.
    """

    share: float = 1.0
    is_left: Callable[[], bool] = lambda: True

    def again(self) -> bool:
        """Returns True if the last batch may have left planned ones."""
        return self.is_left()


class IngestHost(QueryHost):
    """Hosts an ingest: planned batches in, its four tables out."""

    def __init__(
        self,
        spark: SparkSession,
        settings: Settings,
        stream: Ingest,
        run_id: str,
        check: Callable[[], None] = owned,
    ) -> None:
        super().__init__(spark, settings, stream, run_id, check)
        most = settings.batch_bytes * spark.sparkContext.defaultParallelism
        planner = BatchPlanner(self.lake, settings.landing_root, stream, run_id, check, most)
        self.admission = Admission(
            spark, self.lake, stream, planner.source, self.origin, settings.driver_bytes
        )
        self._plan = self.lake.path(planner.table)
        self._plan_columns = arrow_schema(PLAN_SCHEMA)
        self.backlog = self._source = SourceBacklog(planner, lambda: self.admission.progress)
        self.watermark = IngestWatermark(self.admission)
        # Sooner than others: every stream waits for admission, and its batches cost little.
        interval = min(INGEST_SECONDS, settings.trigger_seconds)
        self.trigger = IngestTrigger(interval, [self._plan], is_left=self._source.is_left)

    def read(self) -> DataFrame:
        """The planned batches, some at a time."""
        self._source.running = True
        reader = delta_stream(self.spark, self._plan)
        reader = reader.option("maxFilesPerTrigger", str(PLANNED_PER_TRIGGER))
        if CommitLog(self._plan).complete():
            # In the order of commits; a snapshot would be read by the times of the clock.
            reader = reader.option("startingVersion", "0")
        return reader.load(self._plan)

    def stop(self, patience: float = 30.0) -> None:
        """Stop the query, then release the source."""
        super().stop(patience)
        self._source.planner.source.close()

    def _planned_rows(self, frame: DataFrame, batch: int) -> list[dict[str, Any]]:
        """The batch's rows of the plan: by its commits where these are plain, else as Spark reads.

        A Spark job for two rows takes most of what beginning a batch takes.
        """
        commits = commits_of_batch(self.checkpoint, batch)
        rows = None if commits is None else added_rows(self._plan, commits, self._plan_columns)
        if rows is not None:
            own: list[dict[str, Any]] = rows.to_pylist()
            return own
        return [row.asDict() for row in frame.collect()]

    def write(self, frame: DataFrame, batch: int) -> BatchResult:
        """Admit the rows of the planned splits."""
        splits = [planned_split(row) for row in self._planned_rows(frame, batch)]
        if not splits:
            return BatchResult(rows_in=0)
        result = self.admission.admit(splits, batch)
        self._source.taken({split.batch for split in splits})
        return BatchResult(
            rows_in=result.rows,
            rows_out=result.admitted,
            admitted=result.admitted,
            late=result.late,
            quarantined=result.quarantined,
            files=result.files,
            watermark=self.watermark.reached(),
        )


ROWS: Final = frozenset({"commitInfo", "add"})
"""What an entry consists of that brings rows and does nothing else."""


def added_rows(table_path: str, commits: range, schema: pa.Schema) -> pa.Table | None:
    """The rows of those versions' commits, in their order, by these columns.

    None where anything else than rows came: another schema, files that were taken out, partitions.
    And where an entry or a file is gone. Raises TableDamaged for an entry that is empty or cut.
    """
    store, folder = filesystem(f"{table_path}/_delta_log")
    table = Path(folder).parent
    parts = [schema.empty_table()]
    try:
        for version in commits:
            for name in _files(read_entry(store, folder, version)):
                rows = read_file(store, f"{table}/{name}", schema.names)
                parts.append(rows.select(schema.names).cast(schema))
    except (KeyError, ValueError, OSError, pa.ArrowException):
        # Spark finds it again, and says what it is.
        return None
    return pa.concat_tables(parts)


def _files(actions: Actions) -> Iterator[str]:
    """The files of an entry; raises ValueError for one that does not add rows alone."""
    for action in actions:
        add = action.get("add")
        if not action.keys() <= ROWS or (add is not None and _asks_more(add)):
            raise ValueError("not rows alone")
        if add is not None:
            yield unquote(add["path"])


def _asks_more(add: dict[str, object]) -> bool:
    return bool(add.get("partitionValues") or add.get("deletionVector") or not add["dataChange"])
