"""Metrics of a deployment in Prometheus' format, from heartbeats, records and logs, without Spark.

They are read where they lie, by a process of its own: so one address serves all groups, and it
still answers when the runs that it speaks of are gone.

Each recorded batch counts once, and no count ever falls. The table of batches itself would not do:
upkeep takes its oldest rows, and Prometheus takes a sum that falls for a counter that was reset.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from rivermark.lake.log import CommitLog
from rivermark.lake.rows_in_files import InFiles
from rivermark.lake.snapshot import open_whole, snapshot
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.history import newest_results
from rivermark.monitor.checks.liveness import alive
from rivermark.monitor.lag import lags_of
from rivermark.monitor.prometheus.event_age import EventAges
from rivermark.monitor.watermarks import watermarks_of
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import FAILURES, WAITING, HeartbeatStore
from rivermark.runtime.supervision.progress_log import STREAM_PROGRESS
from rivermark.settings import Settings

COUNTED: Final = {
    "rows_in": "Rows, messages or records that a stream has read.",
    "rows_out": "Rows that a stream has written to its tables.",
    "admitted": "Rows of an ingest that are in its table.",
    "late": "Rows of an ingest that came after its watermark.",
    "quarantined": "Rows of an ingest that break its contract.",
    "files": "Files or other splits that an ingest has taken.",
    "duplicates": "Rows that were left out as duplicates.",
    "dropped_by_watermark": "Rows that an operator dropped as too late.",
}
"""Columns of `ops/stream_progress` that are added up, and what they say."""
SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)
"""Upper bounds of the histogram of batches."""


class BatchCounts:
    """Metrics of the batches of some streams, in a registry."""

    def __init__(
        self, settings: Settings, streams: Collection[str], registry: CollectorRegistry
    ) -> None:
        self._lake = settings.lake()
        self._streams = streams
        self._next = 0
        names = ["stream"]
        self._counters = {
            column: Counter(f"rivermark_{column}", text, names, registry=registry)
            for column, text in COUNTED.items()
        }
        self._seconds = Histogram(
            "rivermark_batch_seconds",
            "Duration of a batch, from its plan to its commit.",
            names,
            buckets=SECONDS,
            registry=registry,
        )
        self._last = Gauge(
            "rivermark_last_batch_timestamp_seconds",
            "Start of the newest recorded batch.",
            names,
            registry=registry,
        )
        self._state = {
            column: Gauge(f"rivermark_{column}", text, names, registry=registry)
            for column, text in (
                ("state_rows", "Rows in the state of a stream after its newest recorded batch."),
                ("state_bytes", "Memory that the state of a stream takes."),
            )
        }
        of_process = ["stream", "name"]
        self._process = (
            Counter(
                "rivermark_process", "Counters of process functions.", of_process, registry=registry
            ),
            Gauge(
                "rivermark_process_value",
                "Gauges of process functions.",
                of_process,
                registry=registry,
            ),
        )

        for stream in streams:
            # At 0, or a rate would not see the first batch.
            for column in ("rows_in", "rows_out"):
                self._counters[column].labels(stream)
            self._seconds.labels(stream)

    def count_new(self) -> None:
        """Count the batches that were recorded since the last call. Raises TableDamaged."""
        path = self._lake.path(STREAM_PROGRESS)
        latest = CommitLog(path).latest()
        if latest is None or latest.version == self._next - 1:
            return
        if latest.version < self._next:
            self._next = 0  # It is another table now.
        if self._next == 0:
            rows: Iterable[dict[str, Any]] = open_whole(self._lake, STREAM_PROGRESS).to_pylist()
        else:
            added = [*CommitLog(path).files_added(self._next, latest.version + 1)]
            rows = InFiles(path, STREAM_PROGRESS, added).arrow().to_pylist()
        for row in sorted(rows, key=lambda row: (row["generation"], row["batch_id"])):
            if row["stream"] in self._streams:
                self._count(row)
        self._next = latest.version + 1

    def _count(self, row: Mapping[str, Any]) -> None:
        stream = row["stream"]
        for column, counter in self._counters.items():
            if row[column] is not None:
                counter.labels(stream).inc(row[column])
        self._seconds.labels(stream).observe((row["duration_ms"] or 0) / 1000)
        if row["started_at"] is not None:
            self._last.labels(stream).set(row["started_at"].timestamp())
        for column, gauge in self._state.items():
            gauge.labels(stream).set(row[column] or 0)
        counts, values = self._process
        for name, number in row.get("counters") or ():
            counts.labels(stream, name).inc(max(0, number))
        for name, number in row.get("gauges") or ():
            values.labels(stream, name).set(number)


FAILED: Final = {"held": 0, "warn": 1, "error": 2, "unanswered": 3}
"""Results of checks as numbers, so that a rule can compare them."""


class DeploymentMetrics:
    """The metrics of some streams. Used by one thread at a time."""

    def __init__(self, settings: Settings, streams: Sequence[AnyStream]) -> None:
        self._settings = settings
        self._streams = streams
        self._registry = CollectorRegistry()
        # First, since it counts what is new.
        self._registry.register(_Now(self._now))
        self._batches = BatchCounts(settings, {s.name for s in streams}, self._registry)
        self._ages = EventAges(settings.lake(), streams, self._registry)

    def text(self) -> bytes:
        """The metrics as they are now, in Prometheus' text format."""
        return generate_latest(self._registry)

    def samples(self) -> list[Sample]:
        """The same, as names, labels and values."""
        return [sample for family in self._registry.collect() for sample in family.samples]

    def dead(self) -> dict[str, str]:
        """The streams that should run and do not, and what is seen of each."""
        now, seen = datetime.now(UTC), dict[str, str]()
        for stream in self._streams:
            try:
                result = alive(self._settings, stream, now)
            except RivermarkError as problem:
                seen[stream.name] = str(problem)
                continue
            if not result.passed:
                seen[stream.name] = result.observed
        return seen

    def _now(self) -> Iterator[Metric]:
        """Values as of now; a part that cannot be read does not hide the others."""
        began = time.monotonic()
        unread = GaugeMetricFamily(
            "rivermark_unreadable", "1 where a part of the metrics cannot be read.", labels=["part"]
        )
        with snapshot(self._settings.lake()):
            parts: dict[str, Callable[[], list[GaugeMetricFamily]]] = {
                "batches": self._new_batches,
                "ages": self._new_ages,
                "life": self._life,
                "watermarks": self._watermarks,
                "lag": self._lag,
                "checks": self._checks,
            }
            for name, part in parts.items():
                try:
                    yield from part()
                except (RivermarkError, OSError):
                    unread.add_metric([name], 1)
                else:
                    unread.add_metric([name], 0)
        yield unread
        yield GaugeMetricFamily(
            "rivermark_scrape_seconds", "Time that reading all this took.", time.monotonic() - began
        )

    def _new_batches(self) -> list[GaugeMetricFamily]:
        self._batches.count_new()
        return []

    def _new_ages(self) -> list[GaugeMetricFamily]:
        self._ages.count_new()
        return []

    def _life(self) -> list[GaugeMetricFamily]:
        labels = ["stream", "group"]
        wanted = GaugeMetricFamily(
            "rivermark_should_run", "1 where the group of a stream is meant to run.", labels=labels
        )
        living = GaugeMetricFamily(
            "rivermark_alive", "0 where a stream should run and does not.", labels=labels
        )
        waiting = GaugeMetricFamily(
            "rivermark_waiting",
            "Files, messages or commits that a stream has not taken yet, by its last heartbeat.",
            labels=labels,
        )
        failures = GaugeMetricFamily(
            "rivermark_failures", "Failures in a row, without a finished batch.", labels=labels
        )
        dead = self.dead()
        desired = DesiredStore(self._settings.state)
        beats = HeartbeatStore(self._settings.state).latest()
        for stream in self._streams:
            values = [stream.name, stream.group]
            wanted.add_metric(values, int(desired.get(stream.group).state == "run"))
            living.add_metric(values, int(stream.name not in dead))
            if (beat := beats.get(stream.name)) is not None:
                waiting.add_metric(values, beat.numbers.get(WAITING, 0))
                failures.add_metric(values, beat.numbers.get(FAILURES, 0))
        return [wanted, living, waiting, failures]

    def _watermarks(self) -> list[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "rivermark_watermark_timestamp_seconds",
            "Event time to which a stream is complete.",
            labels=["stream"],
        )
        for stream, at in watermarks_of(self._settings, self._streams).items():
            family.add_metric([stream], at.timestamp())
        return [family]

    def _lag(self) -> list[GaugeMetricFamily]:
        records = GaugeMetricFamily(
            "rivermark_unread", "Records of a topic that no table holds.", labels=["stream", "part"]
        )
        oldest = GaugeMetricFamily(
            "rivermark_unread_seconds", "Age of the oldest unread record.", labels=["stream"]
        )
        unknown = GaugeMetricFamily(
            "rivermark_lag_unknown", "1 where the source does not answer.", labels=["stream"]
        )
        now = datetime.now(UTC)
        for stream, lag in lags_of(self._settings, self._streams).items():
            unknown.add_metric([stream], int(lag.problem is not None))
            if lag.problem is None:
                oldest.add_metric([stream], lag.age(now).total_seconds())
            for part in lag.parts:
                records.add_metric([stream, part.name], part.records)
        return [records, oldest, unknown]

    def _checks(self) -> list[GaugeMetricFamily]:
        family = GaugeMetricFamily(
            "rivermark_check",
            "Newest result of a check: 0 held, 1 warning, 2 error, 3 unanswered.",
            labels=["stream", "table", "check"],
        )
        names = {stream.name for stream in self._streams}
        for each in newest_results(self._settings, 1):
            if each.stream in names:
                family.add_metric([each.stream, each.table, each.check], FAILED[each.result])
        return [family]


class _Now(Collector):
    """Collector of the values that are read at each scrape."""

    def __init__(self, collect: Callable[[], Iterator[Metric]]) -> None:
        self._collect = collect

    def describe(self) -> list[Metric]:
        """Nothing, or registering it would collect once."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The metrics as they are now."""
        return self._collect()
