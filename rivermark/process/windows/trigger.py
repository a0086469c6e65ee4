"""The trigger of a window: decides when it gives its result, and when it drops its contents."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from enum import Flag
from typing import Any

from rivermark.process.context import TimerKind
from rivermark.process.instants import Millis
from rivermark.process.state import Clock
from rivermark.process.windows.pane import Scalar
from rivermark.process.windows.window import Window


class Verdict(Flag):
    """What a trigger wants done with its window."""

    CONTINUE = 0
    FIRE = 1
    PURGE = 2
    FIRE_AND_PURGE = 3


@dataclass(frozen=True)
class TriggerContext:
    """What a trigger may know and do.

    `state` is the trigger's own memory for this window (texts, numbers, truth values), gone with
    it; `count` the number of events added so far; `at` the event's time, or the timer's.
    """

    window: Window
    at: Millis
    watermark: Millis
    processing_time: Millis
    count: int
    state: MutableMapping[str, Scalar]
    wake: Callable[[TimerKind, Millis], None]

    def now(self, clock: Clock) -> Millis:
        """The watermark or the wall clock."""
        return self.watermark if clock == "event" else self.processing_time

    def register(self, at: Millis, kind: TimerKind = "event") -> None:
        """Call `on_timer` for this window at `at`; the timer goes with the window."""
        self.wake(kind, at)


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
