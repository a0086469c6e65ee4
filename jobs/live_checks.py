"""Checks of streams that never end, evaluated beside them in their own run.

A check that another run evaluates is 'not evaluated' on the page as soon as the live run tells of
its table again, a minute later; one of the same run stays. It also costs no second process.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import dagster as dg
from pyspark.sql import SparkSession

from jobs.check_results import Evaluate, evaluated
from jobs.names import table_key
from jobs.suites import SUITE_CHECK, suite_result
from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.check import StreamCheck
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.quality.suites import suites_of
from rivermark.settings import Settings

PATIENCE: Final = 10.0
"""Seconds that a stop waits for the running check; a longer one ends with the process."""


@dataclass(frozen=True)
class Crash:
    """A check that could not be evaluated: an error of the check, not of the data."""

    key: dg.AssetCheckKey
    error: BaseException

    @property
    def name(self) -> str:
        """The table and the check."""
        return f"{self.key.asset_key.to_user_string()} {self.key.name}"


@dataclass
class _Round:
    """Checks that are evaluated together, and when they are due."""

    checks: dict[dg.AssetCheckKey, Evaluate]
    every: timedelta
    due: float


@dataclass
class LiveChecks:
    """Evaluates in a thread of its own; the thread that speaks to Dagster takes the results."""

    rounds: list[_Round]
    _results: queue.SimpleQueue[dg.AssetCheckResult | Crash] = field(
        default_factory=queue.SimpleQueue
    )
    _done: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Evaluate on the clock as long as the context lasts."""
        thread = threading.Thread(target=self._run, name="checks", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._done.set()
            thread.join(PATIENCE)

    def take(self) -> list[dg.AssetCheckResult | Crash]:
        """The results since the last call."""
        results = []
        while not self._results.empty():
            results.append(self._results.get())
        return results

    def _run(self) -> None:
        while not self._done.wait(1):
            for each in self.rounds:
                if time.monotonic() >= each.due:
                    self._evaluate(each.checks)
                    each.due = time.monotonic() + each.every.total_seconds()

    def _evaluate(self, checks: dict[dg.AssetCheckKey, Evaluate]) -> None:
        for key, evaluate in checks.items():
            if self._done.is_set():
                return
            try:
                self._results.put(evaluate())
            except (Exception, SystemExit) as error:
                # SystemExit: in a thread it would end the evaluation silently.
                self._results.put(Crash(key, error))


def live_checks(
    streams: Sequence[AnyStream],
    settings: Settings,
    spark: SparkSession,
    *,
    checks_every: timedelta,
    suites_every: timedelta | None,
) -> LiveChecks:
    """The checks of these streams: their own soon and often, suites seldom or (None) never."""
    checks = {
        dg.AssetCheckKey(table_key(check.table), check.name): _evaluate(check, settings)
        for stream in streams
        for check in checks_of_stream(stream)
    }
    # Half a minute: the first batches of a start have the cores for themselves.
    rounds = [_Round(checks, checks_every, time.monotonic() + 30)]
    suites: dict[dg.AssetCheckKey, Evaluate] = {
        dg.AssetCheckKey(table_key(table), SUITE_CHECK): partial(
            suite_result, spark, settings, table, suite
        )
        for stream in streams
        for table, suite in suites_of(stream)
    }
    if suites and suites_every is not None:
        first = min(suites_every, timedelta(minutes=5))
        rounds.append(_Round(suites, suites_every, time.monotonic() + first.total_seconds()))
    return LiveChecks(rounds)


def _evaluate(check: StreamCheck, settings: Settings) -> Evaluate:
    return lambda: evaluated(check, settings, datetime.now(UTC))
