"""Triggers decide when a window emits its result, and when it drops its contents."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from enum import Flag
from typing import Any

from rivermark.process.api.context import Context
from rivermark.process.instants import Millis
from rivermark.process.timers import TimeDomain
from rivermark.process.windows.window import Pane, Prefixed, Scalar, Window


class TriggerResult(Flag):
    """The decision of a trigger about its window."""

    CONTINUE = 0
    FIRE = 1
    PURGE = 2
    FIRE_AND_PURGE = 3


class TriggerContext:
    """The context of a trigger.

    `state` is the trigger's own memory for this window (texts, numbers, truth values), gone with
    it; `count` the number of events added so far; `at` the event's time, or the timer's. `merged`
    are, in `on_merge`, the memories that the trigger had for the windows that became this one.
    """

    __slots__ = (
        "_ctx",
        "_pane",
        "at",
        "count",
        "merged",
        "processing_time",
        "state",
        "watermark",
        "window",
    )

    def __init__(
        self,
        window: Window,
        pane: Pane[Any],
        at: Millis,
        ctx: Context[Any],
        merged: Sequence[MutableMapping[str, Scalar]] = (),
    ) -> None:
        self._pane = pane
        self._ctx = ctx
        self.window = window
        self.at = at
        self.watermark = ctx.watermark
        self.processing_time = ctx.processing_time
        self.count = pane.count
        self.state: MutableMapping[str, Scalar] = pane.trigger
        self.merged = merged

    def part(self, prefix: str) -> TriggerContext:
        """The same, with a part of the memory: for one of several triggers."""
        merged = [Prefixed(each, prefix) for each in self.merged]
        part = TriggerContext(self.window, self._pane, self.at, self._ctx, merged)
        part.state = Prefixed(self.state, prefix)
        return part

    def now(self, clock: TimeDomain) -> Millis:
        """The watermark or the wall clock."""
        return self.watermark if clock == "event" else self.processing_time

    def register(self, at: Millis, kind: TimeDomain = "event") -> None:
        """Call `on_timer` for this window at `at`; the timer goes with the window."""
        event = kind == "event"
        timers = self._pane.event_timers if event else self._pane.processing_timers
        if at not in timers:
            timers.append(at)
            (self._ctx.timers.event if event else self._ctx.timers.processing).register(at)


class Trigger:
    """Decides when a window fires and when it is purged. Subclass it as you need.

    Whatever a trigger keeps stands in `ctx.state`. When windows are merged their timers are gone
    and `ctx.state` is empty: `on_merge` sets the trigger up again, from what it kept for each of
    them (`ctx.merged`).
    """

    def on_event(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        """An event was added."""
        raise NotImplementedError

    def on_timer(self, at: Millis, kind: TimeDomain, ctx: TriggerContext) -> TriggerResult:
        """A timer that this or another trigger of the window registered."""
        return TriggerResult.CONTINUE

    def on_merge(self, ctx: TriggerContext) -> TriggerResult:
        """The window was merged from those of `ctx.merged`; `ctx.count` is that of all.

        The event that joined them follows in `on_event`.
        """
        return TriggerResult.CONTINUE


class Purging(Trigger):
    """Another trigger, with its window purged whenever it fires."""

    def __init__(self, trigger: Trigger) -> None:
        self.trigger = trigger

    def on_event(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        """As the other, purging."""
        return _purged(self.trigger.on_event(event, ctx))

    def on_timer(self, at: Millis, kind: TimeDomain, ctx: TriggerContext) -> TriggerResult:
        """As the other, purging."""
        return _purged(self.trigger.on_timer(at, kind, ctx))

    def on_merge(self, ctx: TriggerContext) -> TriggerResult:
        """As the other, purging."""
        return _purged(self.trigger.on_merge(ctx))


class AnyOf(Trigger):
    """Several triggers; what any of them wants is done."""

    def __init__(self, *triggers: Trigger) -> None:
        self.triggers = triggers

    def on_event(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        """Ask all of them."""
        return self._all(ctx, lambda trigger, own: trigger.on_event(event, own))

    def on_timer(self, at: Millis, kind: TimeDomain, ctx: TriggerContext) -> TriggerResult:
        """Ask all of them."""
        return self._all(ctx, lambda trigger, own: trigger.on_timer(at, kind, own))

    def on_merge(self, ctx: TriggerContext) -> TriggerResult:
        """Ask all of them."""
        return self._all(ctx, lambda trigger, own: trigger.on_merge(own))

    def _all(
        self, ctx: TriggerContext, ask: Callable[[Trigger, TriggerContext], TriggerResult]
    ) -> TriggerResult:
        result = TriggerResult.CONTINUE
        for place, trigger in enumerate(self.triggers):
            result |= ask(trigger, ctx.part(f"{place}."))
        return result


def _purged(result: TriggerResult) -> TriggerResult:
    return result | TriggerResult.PURGE if TriggerResult.FIRE in result else result
