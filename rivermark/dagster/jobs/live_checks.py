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

from rivermark.dagster.jobs.check_results import Evaluate, evaluated
from rivermark.dagster.jobs.names import table_key
from rivermark.dagster.jobs.suites import SUITE_CHECK, suite_result
from rivermark.model.stream import AnyStream
from rivermark.monitor.checks.check import StreamCheck
from rivermark.monitor.checks.liveness import ALIVE
from rivermark.monitor.checks.registry import checks_of_stream
from rivermark.quality.suites import suites_of
from rivermark.runtime.restart.outbox import Trouble
from rivermark.runtime.supervision.error_classes import explain
from rivermark.settings import Settings

REPEATED: Final = 2
"""Evaluations in a row without a good result after which a person is told: one may be of a restart
or of a service that was away."""
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
    _bad: dict[dg.AssetCheckKey, int] = field(default_factory=dict)
    _evaluated: set[dg.AssetCheckKey] = field(default_factory=set)
    _troubles: dict[dg.AssetCheckKey, Trouble] = field(default_factory=dict)

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
        for result in results:
            self._note(result)
        return results

    def troubles(self) -> list[Trouble]:
        """The checks that are broken, or have failed as errors, in several evaluations in a row."""
        return [self._troubles[key] for key, bad in self._bad.items() if bad >= REPEATED]

    @property
    def decided(self) -> bool:
        """True once all were evaluated, and none has failed for the first time."""
        keys = {key for each in self.rounds for key in each.checks}
        return keys <= self._evaluated and min(self._bad.values(), default=REPEATED) >= REPEATED

    def _note(self, result: dg.AssetCheckResult | Crash) -> None:
        is_error = True
        if isinstance(result, Crash):
            key, cause = result.key, explain(result.error).cause
            why = f"could not be evaluated: {result.error}"
        else:
            key, cause, why = _key_of(result), None, f"fails: {result.description}"
            # The restart sensor itself tells which stream does not live.
            is_warning = result.severity is not dg.AssetCheckSeverity.ERROR
            is_error = not (result.passed or is_warning or key.name == ALIVE)
        self._evaluated.add(key)
        if not is_error:
            self._bad.pop(key, None)
            return
        name = f"{key.asset_key.to_user_string()} {key.name}"
        self._bad[key] = self._bad.get(key, 0) + 1
        self._troubles[key] = Trouble(
            cause=cause or f"check:{name}", about=f"check {name}", message=f"check {name} {why}"
        )

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


def _key_of(result: dg.AssetCheckResult) -> dg.AssetCheckKey:
    assert result.asset_key is not None  # noqa: S101 - every result here names its table
    return dg.AssetCheckKey(result.asset_key, result.check_name or "")


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
