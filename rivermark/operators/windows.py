"""Windows of event time as values: tumbling, sliding, and sessions.

Every window includes its start and excludes its end: an event exactly on a border belongs to the
later one. Windows lie on multiples of their size since 1970-01-01T00:00Z, whatever the session's
time zone. On a stream a window is final once the watermark has reached its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from math import gcd
from typing import Protocol

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from rivermark.model.declared import declared
from rivermark.model.errors import DeclarationError
from rivermark.model.time import MICROSECOND
from rivermark.operators.finished import fixed
from rivermark.operators.reach import Reach, declare, measure_sessions

WINDOW = "_window"
MOST_WINDOWS = 10_000
"""Sliding windows that an event may lie in."""


class EventWindow(Protocol):
    """A rule that puts each event into one or more windows."""

    def over(self, event_time: str) -> Column:
        """The window (a struct of start and end) to group by."""
        ...


@declared("window")
@dataclass(frozen=True)
class TumblingWindow:
    """One window after the other, each of `size`, the first beginning `offset` after 1970 (UTC).

    Raises DeclarationError for a size that is not above zero, as the other windows do.
    """

    size: timedelta
    offset: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        _positive(size=self.size)

    def over(self, event_time: str) -> Column:
        """The one window of an event."""
        step = _common(self.size, self.offset % self.size)
        declare(Reach("window", f"windows of {self.size}", self.size, step))
        size = interval(self.size)
        return F.window(event_time, size, size, interval(self.offset % self.size))


@declared("window")
@dataclass(frozen=True)
class SlidingWindow:
    """Windows of `size`, one beginning each `every`: an event lies in size / every of them."""

    size: timedelta
    every: timedelta

    def __post_init__(self) -> None:
        _positive(size=self.size, every=self.every)
        if self.every > self.size:
            raise DeclarationError(f"windows of {self.size} each {self.every} leave events out")
        if self.size // self.every > MOST_WINDOWS:
            raise DeclarationError(
                f"windows of {self.size} each {self.every}: an event would lie in "
                f"{self.size // self.every:,} of them, each a row; at most {MOST_WINDOWS:,}"
            )

    def over(self, event_time: str) -> Column:
        """The windows of an event."""
        words = f"windows of {self.size} each {self.every}"
        declare(Reach("window", words, self.size, _common(self.size, self.every)))
        return F.window(event_time, interval(self.size), interval(self.every))


@declared("window")
@dataclass(frozen=True)
class SessionWindow:
    """A window per stretch of activity of a key: it ends `gap` after its last event.

    Two events exactly `gap` apart are one session, because Spark merges windows that touch. Group
    by it with `per_window`, which keeps a later filter out of the merging and measures how long
    sessions last when days are recomputed.
    """

    gap: timedelta

    def __post_init__(self) -> None:
        _positive(gap=self.gap)

    def over(self, event_time: str) -> Column:
        """The session of an event, merged with those it touches."""
        return F.session_window(event_time, interval(self.gap))


def per_window(
    events: DataFrame, window: EventWindow, event_time: str, *keys: str, **results: Column
) -> DataFrame:
    """Aggregate per key and window, on a stream and on a table alike.

    Columns in: `keys`, `event_time` (a timestamp) and what `results` read. Columns out: the keys,
    `window_start` and `window_end` (UTC, the end not included), then `results` by their names.

        hourly = per_window(rides, TumblingWindow(HOUR), "event_time", "zone", rides=F.count("*"))

    Raises DeclarationError for arguments in another order.
    """
    if not hasattr(window, "over") or not isinstance(event_time, str):
        types = ", ".join(type(each).__name__ for each in (events, window, event_time))
        raise DeclarationError(
            "per_window takes the rows, a window and the name of the event time, in this order, as "
            f'in per_window(rides, TumblingWindow(HOUR), "event_time", ...); it got {types}'
        )
    start, end = F.col(f"{WINDOW}.start"), F.col(f"{WINDOW}.end")
    windows = events.groupBy(*keys, window.over(event_time).alias(WINDOW)).agg(
        *[column.alias(name) for name, column in results.items()]
    )
    if isinstance(window, SessionWindow):
        start, end = fixed(start), fixed(end)
        windows = measure_sessions(windows, f"{WINDOW}.start", f"{WINDOW}.end", window.gap)
    return windows.select(*keys, start.alias("window_start"), end.alias("window_end"), *results)


def interval(span: timedelta) -> str:
    """A time span in Spark's words, exact to the microsecond."""
    return f"{span // MICROSECOND} microseconds"


def _common(*spans: timedelta) -> timedelta:
    """The largest span of which all are multiples."""
    return gcd(*[span // MICROSECOND for span in spans]) * MICROSECOND


def _positive(**spans: timedelta) -> None:
    for name, span in spans.items():
        if span <= timedelta(0):
            raise DeclarationError(f"a window's {name} is {span}, but must be above zero")
