"""When a stream that died is started again: the strategies a stream may declare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from rivermark.model.errors import DeclarationError


class RestartStrategy(Protocol):
    """Says when the next incarnation of a stream may start.

    `starts` are the times (UTC, oldest first) at which it was started since a person last asked for
    it, `died_at` is when its end was noticed. None gives up. A strategy keeps nothing in itself:
    failure rates and growing pauses can be read from `starts` as well.
    """

    def next_start(self, starts: Sequence[datetime], died_at: datetime) -> datetime | None:
        """The earliest time of the next start, or None when there shall be none."""
        ...


@dataclass(frozen=True, kw_only=True)
class FixedDelay:
    """Waits the same time before each restart, and gives up after `attempts` restarts in a row.

    Without `attempts` it never gives up. A stream that lived for `reset_after` has proved itself:
    its earlier failures no longer count.
    """

    delay: timedelta = timedelta(seconds=10)
    attempts: int | None = None
    reset_after: timedelta = timedelta(minutes=10)

    def __post_init__(self) -> None:
        """Refuse pauses that cannot be waited for."""
        if self.delay < timedelta(0) or self.reset_after <= timedelta(0):
            raise DeclarationError("a restart's delay is not negative, its reset_after above zero")
        if self.attempts is not None and self.attempts < 1:
            raise DeclarationError("attempts: at least 1; to never restart, use NoRestart()")

    def next_start(self, starts: Sequence[datetime], died_at: datetime) -> datetime | None:
        """The time of death plus the delay, while attempts are left."""
        if self.attempts is not None and self._failures(starts, died_at) > self.attempts:
            return None
        return died_at + self.delay

    def _failures(self, starts: Sequence[datetime], died_at: datetime) -> int:
        """How many incarnations died young, one after the other, up to the last."""
        young = 0
        ended_by = [*starts[1:], died_at][: len(starts)]
        for began, ended in zip(reversed(starts), reversed(ended_by), strict=True):
            if ended - began >= self.reset_after:
                break
            young += 1
        return young


@dataclass(frozen=True)
class NoRestart:
    """Leaves a dead stream dead until a person asks for it again."""

    def next_start(self, starts: Sequence[datetime], died_at: datetime) -> datetime | None:
        """Never."""
        return None


DEFAULT_STRATEGY: RestartStrategy = FixedDelay()
"""For streams that declare none: ten seconds, without end."""
