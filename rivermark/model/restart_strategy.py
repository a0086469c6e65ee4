"""Restart strategies that a stream may declare: when it is started again after a failure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError


class RestartStrategy(Protocol):
    """Decides when a failed stream is started again.

    `starts` are the times (UTC, oldest first) at which it was started since a person last requested
    it, `died_at` is when its failure was detected. None gives up. A strategy keeps no state:
    failure rates and growing delays can be derived from `starts` as well.
    """

    def next_start(self, starts: Sequence[datetime], died_at: datetime) -> datetime | None:
        """The earliest time of the next start, or None to give up."""
        ...


@declared("restart strategy")
@dataclass(frozen=True, kw_only=True)
class FixedDelay:
    """Waits the same time before each restart, and gives up after `attempts` restarts in a row.

    Without `attempts` it never gives up. After a stream has run for `reset_after`, its earlier
    failures no longer count.
    """

    delay: timedelta = timedelta(seconds=10)
    attempts: int | None = None
    reset_after: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        if self.delay < timedelta(0) or self.reset_after <= timedelta(0):
            raise DeclarationError("a restart's delay is not negative, its reset_after above zero")
        if self.attempts is not None and self.attempts < 1:
            raise DeclarationError("attempts: at least 1; to never restart, use NoRestart()")

    def next_start(self, starts: Sequence[datetime], died_at: datetime) -> datetime | None:
        """The time of the failure plus the delay, while attempts are left."""
        failures = failures_in_a_row(starts, died_at, self.reset_after)
        if self.attempts is not None and failures > self.attempts:
            return None
        return died_at + self.delay


@declared("restart strategy")
@dataclass(frozen=True, kw_only=True)
class GrowingDelay:
    """Waits longer before each restart, and gives up after `attempts` restarts in a row.

    The first wait is `first`, each further one `factor` times as long, none longer than `longest`.
    After a stream has run for `reset_after`, its earlier failures no longer count: there are never
    more than `attempts` + 1 starts within that time.

        >>> from datetime import UTC
        >>> noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
        >>> starts = [noon, noon + timedelta(seconds=30)]
        >>> GrowingDelay().next_start(starts, noon + timedelta(seconds=60)).time().isoformat()
        '12:01:08'
    """

    first: timedelta = timedelta(seconds=2)
    factor: float = 4
    longest: timedelta = timedelta(minutes=5)
    attempts: int = 5
    reset_after: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        if self.first < timedelta(0) or self.reset_after <= timedelta(0):
            raise DeclarationError("a restart's delay is not negative, its reset_after above zero")
        # Not-a-number is neither below 1 nor above.
        if not 1 <= self.factor < math.inf or self.longest < self.first:
            raise DeclarationError(
                "a growing delay needs a finite factor of at least 1, and a "
                "`longest` that is no shorter than the first delay"
            )
        if self.attempts < 1:
            raise DeclarationError("attempts: at least 1; to never restart, use NoRestart()")

    def next_start(self, starts: Sequence[datetime], died_at: datetime) -> datetime | None:
        """The time of the failure plus the delay that has grown, while attempts are left."""
        failures = failures_in_a_row(starts, died_at, self.reset_after)
        if failures > self.attempts:
            return None
        delay = self.first
        # Step by step: the power itself is soon longer than a timedelta can be.
        for _ in range(1, failures):
            delay = min(delay * self.factor, self.longest)
        return died_at + delay


def failures_in_a_row(starts: Sequence[datetime], died_at: datetime, reset_after: timedelta) -> int:
    """Number of the last runs in a row that failed before they had lasted `reset_after`."""
    failures = 0
    ended_by = [*starts[1:], died_at][: len(starts)]
    for began, ended in zip(reversed(starts), reversed(ended_by), strict=True):
        if ended - began >= reset_after:
            break
        failures += 1
    return failures


@dataclass(frozen=True)
class NoRestart:
    """Leaves a failed stream stopped until a person requests it again."""

    def next_start(self, starts: Sequence[datetime], died_at: datetime) -> datetime | None:
        """Never."""
        return None


DEFAULT_STRATEGY: RestartStrategy = GrowingDelay()
"""For streams that declare none: after 2, 8, 32, 128 and 300 seconds, then given up."""
