"""Assigners: which windows an event belongs to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, ClassVar, get_args

from rivermark.model.errors import DeclarationError
from rivermark.model.place import caller
from rivermark.model.time import MILLISECOND
from rivermark.process.instants import Millis, span, span_or_zero
from rivermark.process.timers import TimeDomain
from rivermark.process.windows.evictors import Evictor, LastCount
from rivermark.process.windows.trigger import Trigger
from rivermark.process.windows.triggers import AtEnd, EveryCount, Never
from rivermark.process.windows.window import GLOBAL, Window


def offset_of(offset: object) -> Millis:
    """Milliseconds by which windows are moved; DeclarationError where it is no duration."""
    if not isinstance(offset, timedelta):
        error = DeclarationError(f"the offset of windows must be a timedelta, not {offset!r}")
        raise error.at(caller())
    return offset // MILLISECOND


def clock_of(clock: TimeDomain) -> TimeDomain:
    """The time that counts; DeclarationError where there is none of that name."""
    if clock not in get_args(TimeDomain):
        raise DeclarationError(
            f"the clock of windows must be {' or '.join(map(repr, get_args(TimeDomain)))}, not "
            f"{clock!r}"
        ).at(caller())
    return clock


class Assigner:
    """Says which windows an event belongs to. Subclass it for windows of your own.

    `clock` is the time that counts: the event's own, or the wall clock of its handling. Windows of
    a `merging` assigner become one when they touch. `endless` windows are never late nor cleared by
    the clock. Sizes, gaps and slides are whole milliseconds above 0; others raise DeclarationError.
    """

    clock: TimeDomain = "event"
    merging: ClassVar[bool] = False
    endless: ClassVar[bool] = False

    def assign(self, event: Any, at: Millis) -> Iterable[Window]:
        """Windows of an event whose time is `at`."""
        raise NotImplementedError

    def trigger(self) -> Trigger:
        """The trigger of these windows where the process names none."""
        return AtEnd(self.clock)

    def evictor(self) -> Evictor | None:
        """The evictor of these windows where the process names none."""
        return None


class Tumbling(Assigner):
    """Windows of one size that follow one another, aligned to the epoch (UTC) plus `offset`.

    >>> Tumbling(timedelta(seconds=10)).assign(None, 19_999)
    (Window(start=10000, end=20000),)
    """

    def __init__(
        self, size: timedelta, *, offset: timedelta = timedelta(0), clock: TimeDomain = "event"
    ) -> None:
        self.size = span(size, "the size of a window")
        self.offset = offset_of(offset)
        self.clock = clock_of(clock)

    def assign(self, event: Any, at: Millis) -> tuple[Window]:
        """The one window that `at` lies in; a window's start is inside, its end is not."""
        start = at - (at - self.offset) % self.size
        return (Window(start, start + self.size),)


class Sliding(Assigner):
    """Windows of one size that begin every `slide`; an event lies in size / slide of them.

    With a slide larger than the size some events lie in none, and are then neither counted nor
    late.

        >>> windows = Sliding(timedelta(seconds=10), timedelta(seconds=5)).assign(None, 12_000)
        >>> [(each.start, each.end) for each in windows]
        [(5000, 15000), (10000, 20000)]
    """

    def __init__(
        self,
        size: timedelta,
        slide: timedelta,
        *,
        offset: timedelta = timedelta(0),
        clock: TimeDomain = "event",
    ) -> None:
        self.size = span(size, "the size of a window")
        self.slide = span(slide, "the slide of windows")
        self.offset = offset_of(offset)
        self.clock = clock_of(clock)

    def assign(self, event: Any, at: Millis) -> list[Window]:
        """The windows that `at` lies in, earliest first."""
        latest = at - (at - self.offset) % self.slide
        starts = range(latest, at - self.size, -self.slide)
        return [Window(start, start + self.size) for start in reversed(starts)]


class Sessions(Assigner):
    """Windows of activity: events of a key less than or exactly a gap apart share one.

    The gap may depend on the event. A session ends a gap after its last event.

        >>> Sessions(timedelta(minutes=5)).assign(None, 1_000)
        (Window(start=1000, end=301000),)
    """

    merging = True

    def __init__(
        self, gap: timedelta | Callable[[Any], timedelta], *, clock: TimeDomain = "event"
    ) -> None:
        self._gap = gap if callable(gap) else None
        self._millis = 0 if callable(gap) else span(gap, "the gap of sessions")
        self.clock = clock_of(clock)

    def assign(self, event: Any, at: Millis) -> tuple[Window]:
        """The window of the event alone; the process joins it with those that it touches."""
        gap = self._millis if self._gap is None else span(self._gap(event), "the gap of a session")
        return (Window(at, at + gap),)


class Global(Assigner):
    """One window for each key, without end: it needs a trigger, and something to clear it."""

    endless = True

    def assign(self, event: Any, at: Millis) -> tuple[Window]:
        """The window of the key."""
        return (GLOBAL,)

    def trigger(self) -> Trigger:
        """None by default: it never fires by itself."""
        return Never()


class Counting(Global):
    """Windows of `size` events in order of arrival; with a `slide`, one ends every `slide` events.

    Fewer events than that stay in the state, unless `timeout` after the first of them (in event
    time) the window closes with what it has.

    Raises:
        DeclarationError: The size or the slide is below 1.
    """

    def __init__(
        self, size: int, slide: int | None = None, *, timeout: timedelta = timedelta(0)
    ) -> None:
        counts: dict[str, Any] = {"size": size, "slide": 1 if slide is None else slide}
        for what, count in counts.items():
            if not isinstance(count, int) or count < 1:
                raise DeclarationError(
                    f"the {what} of a count window must be a whole number of events above 0, not "
                    f"{count!r}"
                ).at(caller())
        self.size = size
        self.slide = slide
        self.timeout = span_or_zero(timeout, "the time-out of a count window")

    def trigger(self) -> Trigger:
        """Fire at every `size` events, or `slide`; purge where windows do not overlap."""
        return EveryCount(
            self.slide or self.size, purge=self.slide is None, timeout=self.timeout or None
        )

    def evictor(self) -> Evictor | None:
        """Keep the last `size` events where windows overlap."""
        return None if self.slide is None else LastCount(self.size)
