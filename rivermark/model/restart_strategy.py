"""When a failed stream is started again: the strategies a stream may declare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

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
        if self.attempts is not None and self._failures(starts, died_at) > self.attempts:
            return None
        return died_at + self.delay

    def _failures(self, starts: Sequence[datetime], died_at: datetime) -> int:
        """How many of the last runs in a row failed before `reset_after`."""
        failures = 0
        ended_by = [*starts[1:], died_at][: len(starts)]
        for began, ended in zip(reversed(starts), reversed(ended_by), strict=True):
            if ended - began >= self.reset_after:
                break
            failures += 1
        return failures


@dataclass(frozen=True)
class NoRestart:
    """Leaves a failed stream stopped until a person requests it again."""

    def next_start(self, starts: Sequence[datetime], died_at: datetime) -> datetime | None:
        """Never."""
        return None


DEFAULT_STRATEGY: RestartStrategy = FixedDelay()
"""For streams that declare none: after ten seconds, any number of times."""
