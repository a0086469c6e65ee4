"""One stream within a run: its state, and whether it is started again after a failure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from rivermark.model.restart_strategy import DEFAULT_STRATEGY, NoRestart, RestartStrategy
from rivermark.model.stream import AnyStream
from rivermark.runtime.supervision.error_classes import Fault
from rivermark.runtime.supervision.heartbeat import ENDED, State

SLOW_STARTS: Final = 4
"""How often a query whose Python process did not come up in time is started again at once."""
FAILURES_WHILE_DRAINING: Final = 10
"""Failures in a row, without a finished batch, after which a bounded run gives a stream up: it has
to end, and a strategy may allow restarts without end."""
STARTS_KEPT: Final = 50
"""More starts than any strategy looks back on."""


def strategy_of(stream: AnyStream, *, bounded: bool) -> RestartStrategy:
    """The stream's own restart strategy.

    Where it declares none, a live run has the default, and a bounded run reports the first failure:
    whatever started it decides whether to try again.
    """
    return stream.restart or (NoRestart() if bounded else DEFAULT_STRATEGY)


@dataclass
class StreamRun:
    """Decides about one stream by its restart strategy; reads no clock and starts nothing.

    All times are UTC. `start_at` is when the next start is due, None when there is none to come.
    `failures` counts those in a row since the last finished batch, `fault` is the last of them.
    """

    stream: AnyStream
    bounded: bool = False
    state: State = "starting"
    starts: list[datetime] = field(default_factory=list)
    start_at: datetime | None = None
    failures: int = 0
    fault: Fault | None = None
    cause: BaseException | None = None
    _slow_starts: int = 0

    @property
    def ended(self) -> bool:
        """True if it was drained, stopped, or failed for good."""
        return self.state in ENDED

    @property
    def given_up(self) -> bool:
        """True if its strategy allowed no further start after a failure that might have passed."""
        fault = self.fault
        if self.state != "failed" or fault is None:
            return False
        return fault.restartable and not (fault.needs_new_run or fault.session_lost)

    def attempt(self, now: datetime) -> None:
        """Record a start."""
        self.start_at = None
        self.starts = [*self.starts, now][-STARTS_KEPT:]

    def progressed(self) -> None:
        """Record a finished batch: what failed before it is over."""
        if not self.ended:
            self.failures, self.fault, self.cause = 0, None, None

    def failed(self, error: BaseException, fault: Fault, now: datetime) -> None:
        """Decide after a failure: `start_at` is set, or the stream has failed for good."""
        self.fault, self.cause = fault, error
        self.start_at = self._next_start(fault, now)
        self.state = "failed" if self.start_at is None else "starting"

    def _next_start(self, fault: Fault, now: datetime) -> datetime | None:
        if fault.slow_worker and self._slow_starts < SLOW_STARTS:
            self._slow_starts += 1
            # It never came to work: no start by which a strategy should count.
            self.starts = self.starts[:-1]
            return now
        self.failures += 1
        if not fault.restartable or fault.needs_new_run:
            return None
        if self.bounded and self.failures >= FAILURES_WHILE_DRAINING:
            return None
        return strategy_of(self.stream, bounded=self.bounded).next_start(self.starts, now)
