"""The trigger of a window: decides when it gives its result, and when it drops its contents."""

from __future__ import annotations

from collections.abc import MutableMapping
from enum import Flag
from typing import Any

from rivermark.process.api.context import Context, TimerKind
from rivermark.process.instants import Millis
from rivermark.process.timers import Clock
from rivermark.process.windows.pane import Pane, Prefixed, Scalar
from rivermark.process.windows.window import Window


class Verdict(Flag):
    """What a trigger wants done with its window."""

    CONTINUE = 0
    FIRE = 1
    PURGE = 2
    FIRE_AND_PURGE = 3


class TriggerContext:
    """What a trigger may know and do.

    `state` is the trigger's own memory for this window (texts, numbers, truth values), gone with
    it; `count` the number of events added so far; `at` the event's time, or the timer's.
    """

    __slots__ = (
        "_ctx",
        "_pane",
        "at",
        "count",
        "processing_time",
        "state",
        "watermark",
        "window",
    )

    def __init__(self, window: Window, pane: Pane[Any], at: Millis, ctx: Context[Any]) -> None:
        """See a window of the current key."""
        self._pane = pane
        self._ctx = ctx
        self.window = window
        self.at = at
        self.watermark = ctx.watermark
        self.processing_time = ctx.processing_time
        self.count = pane.count
        self.state: MutableMapping[str, Scalar] = pane.trigger

    def part(self, prefix: str) -> TriggerContext:
        """The same, with a part of the memory: for one of several triggers."""
        found = TriggerContext(self.window, self._pane, self.at, self._ctx)
        found.state = Prefixed(self.state, prefix)
        return found

    def now(self, clock: Clock) -> Millis:
        """The watermark or the wall clock."""
        return self.watermark if clock == "event" else self.processing_time

    def register(self, at: Millis, kind: TimerKind = "event") -> None:
        """Call `on_timer` for this window at `at`; the timer goes with the window."""
        event = kind == "event"
        timers = self._pane.event_timers if event else self._pane.processing_timers
        if at not in timers:
            timers.append(at)
            (self._ctx.timers.event if event else self._ctx.timers.processing).register(at)


class Trigger:
    """Decides when a window fires and when it is purged. Subclass it as you need.

    Whatever a trigger keeps stands in `ctx.state`. When windows are merged their trigger states are
    not: `on_merge` sets the trigger up anew for the merged one.
    """

    def on_event(self, event: Any, ctx: TriggerContext) -> Verdict:
        """An event was added."""
        raise NotImplementedError

    def on_timer(self, at: Millis, kind: TimerKind, ctx: TriggerContext) -> Verdict:
        """A timer that this or another trigger of the window registered."""
        return Verdict.CONTINUE

    def on_merge(self, ctx: TriggerContext) -> Verdict:
        """The window was merged from several; `ctx.count` is that of all."""
        return Verdict.CONTINUE
