"""Metrics of a deployment in Prometheus' format, from heartbeats, records and logs, without Spark.

They are read where they lie, by a process of its own: so one address serves all groups, and it
still answers when the runs that it speaks of are gone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample

from rivermark.lake.snapshot import snapshot
from rivermark.model.errors import RivermarkError
from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.history import newest_results
from rivermark.monitor.checks.liveness import alive
from rivermark.monitor.lag import lags_of
from rivermark.monitor.prometheus.batch_counts import BatchCounts
from rivermark.monitor.watermarks import watermarks_of
from rivermark.runtime.supervision.desired_state import DesiredStore
from rivermark.runtime.supervision.heartbeat import FAILURES, WAITING, HeartbeatStore
from rivermark.settings import Settings

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
