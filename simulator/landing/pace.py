"""Lands timed rows at a chosen speed, on a schedule that does not depend on any consumer."""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from rivermark.testing.landing import Landed
from simulator.landing.parcels import Parcel, Timed

P = TypeVar("P", bound=Parcel[Timed])


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a paced landing; `behind` is how late the newest file landed."""

    files: int
    rows: int
    due: datetime
    behind: timedelta


@dataclass(frozen=True, slots=True)
class Paced:
    """Result of a paced landing; `stopped` says that it was ended before its rows were."""

    files: int
    rows: int
    most_behind: timedelta
    stopped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The ratio of the rows' own time to the wall clock.

    `speed` is seconds of the rows' time per second of wall time; None or 0 is as fast as possible.
    The first parcel is due at once, or, where `real_time` is set, each at its own instant (speed
    must be 1 then). A landing behind schedule does not wait until it has caught up. A
    silence that would last longer than `longest_wait` of wall time is cut to it, because real files
    hold trips that are years astray.
    """

    speed: float | None = None
    real_time: bool = False
    longest_wait: timedelta | None = None

    def __post_init__(self) -> None:
        if self.speed is not None and self.speed < 0:
            raise ValueError(f"a speed of {self.speed} would run backwards")
        if self.real_time and self.speed != 1:
            raise ValueError("rows land in real time at speed 1 only")


def land_at_pace(
    parcels: Iterable[P],
    deliver: Callable[[P], Landed],
    pace: Pace,
    *,
    stop: threading.Event | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> Paced:
    """Deliver each parcel when it is due, until they end, `stop` is set or Ctrl-C is pressed.

    Parcels come in order of their due time. The file under way is always finished or undone.
    """
    stop = stop or threading.Event()
    schedule = _Schedule(pace)
    files = rows = 0
    most_behind = timedelta(0)
    stopped = False
    try:
        for parcel in parcels:
            wait = schedule.wait_for(parcel.due, now())
            if stop.wait(max(wait.total_seconds(), 0)) if wait > timedelta(0) else stop.is_set():
                stopped = True
                break
            landed = deliver(parcel)
            files, rows = files + 1, rows + landed.rows
            behind = max(-schedule.wait_for(parcel.due, now()), timedelta(0))
            most_behind = max(most_behind, behind)
            if on_progress is not None:
                on_progress(Progress(files, rows, parcel.due, behind))
    except KeyboardInterrupt:
        stopped = True
    return Paced(files, rows, most_behind, stopped)


class _Schedule:
    """Maps the rows' time to the wall's."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._anchor: tuple[datetime, datetime] | None = None

    def wait_for(self, due: datetime, now: datetime) -> timedelta:
        """The time until a parcel is due; negative where it is overdue."""
        if not self._pace.speed:
            return timedelta(0)
        if self._anchor is None:
            self._anchor = (due, due if self._pace.real_time else now)
        rows_time, wall_time = self._anchor
        wait = wall_time + (due - rows_time) / self._pace.speed - now
        longest = self._pace.longest_wait
        if longest is not None and wait > longest:
            self._anchor = (due, now + longest)
            return longest
        return wait
