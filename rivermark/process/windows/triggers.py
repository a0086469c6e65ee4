"""Triggers that decide by the clock, by the number of events, or by their values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rivermark.model.errors import DeclarationError
from rivermark.process.api.context import TimerKind
from rivermark.process.instants import Millis, span
from rivermark.process.timers import Clock
from rivermark.process.windows.trigger import Trigger, TriggerContext, Verdict


class Never(Trigger):
    """Never fires."""

    def on_event(self, event: Any, ctx: TriggerContext) -> Verdict:
        """Continue."""
        return Verdict.CONTINUE


class AtEnd(Trigger):
    """Fires when the clock reaches the window's end, and again for each allowed late event."""

    def __init__(self, clock: Clock = "event") -> None:
        """Go by the watermark, or by the wall clock."""
        self.clock = clock

    def on_event(self, event: Any, ctx: TriggerContext) -> Verdict:
        """Fire at once in a window that has ended; otherwise wait for its end."""
        if ctx.window.end <= ctx.now(self.clock):
            return Verdict.FIRE
        ctx.register(ctx.window.end, self.clock)
        return Verdict.CONTINUE

    def on_timer(self, at: Millis, kind: TimerKind, ctx: TriggerContext) -> Verdict:
        """Fire at the end."""
        due = kind == self.clock and at == ctx.window.end
        return Verdict.FIRE if due else Verdict.CONTINUE

    def on_merge(self, ctx: TriggerContext) -> Verdict:
        """Wait for the end of the merged window."""
        if ctx.window.end > ctx.now(self.clock):
            ctx.register(ctx.window.end, self.clock)
        return Verdict.CONTINUE


class Every(Trigger):
    """Fires each `interval` from the window's first event on, if events came since, until its end.

    An early result: put it beside `AtEnd` with `AnyOf`.
    """

    def __init__(self, interval: timedelta, clock: Clock = "event") -> None:
        """Refuse an interval of nothing."""
        self.millis = span(interval, "the interval of early results")
        self.clock = clock

    def on_event(self, event: Any, ctx: TriggerContext) -> Verdict:
        """Start counting time at the first event."""
        if "next" not in ctx.state:
            self._wait(ctx, ctx.at if self.clock == "event" else ctx.processing_time)
        return Verdict.CONTINUE

    def on_timer(self, at: Millis, kind: TimerKind, ctx: TriggerContext) -> Verdict:
        """Fire if anything is new, and wait for the next instant."""
        if kind != self.clock or at != ctx.state.get("next"):
            return Verdict.CONTINUE
        new = ctx.count != ctx.state.get("seen")
        ctx.state["seen"] = ctx.count
        self._wait(ctx, at)
        return Verdict.FIRE if new else Verdict.CONTINUE

    def on_merge(self, ctx: TriggerContext) -> Verdict:
        """Count on from now."""
        self._wait(ctx, ctx.at if self.clock == "event" else ctx.processing_time)
        return Verdict.CONTINUE

    def _wait(self, ctx: TriggerContext, since: Millis) -> None:
        following = since + self.millis
        ctx.state["next"] = following
        if following < ctx.window.end:
            ctx.register(following, self.clock)


class EveryCount(Trigger):
    """Fires at every `count` events; with a time-out also that long after the first of them."""

    def __init__(self, count: int, *, purge: bool = False, timeout: Millis | None = None) -> None:
        """Refuse counts below one; `timeout` is in milliseconds of event time."""
        if count < 1:
            raise DeclarationError("a trigger counts to at least 1")
        self.count = count
        self.verdict = Verdict.FIRE_AND_PURGE if purge else Verdict.FIRE
        self.timeout = timeout

    def on_event(self, event: Any, ctx: TriggerContext) -> Verdict:
        """Fire when enough events came since the last firing."""
        since = int(ctx.state.get("since") or 0) + 1
        if since >= self.count:
            ctx.state.pop("since", None)
            ctx.state.pop("deadline", None)
            if Verdict.PURGE not in self.verdict:
                self._wait(ctx)
            return self.verdict
        ctx.state["since"] = since
        if since == 1:
            self._wait(ctx)
        return Verdict.CONTINUE

    def _wait(self, ctx: TriggerContext) -> None:
        if self.timeout is not None:
            ctx.state["deadline"] = ctx.at + self.timeout
            ctx.register(ctx.at + self.timeout)

    def on_timer(self, at: Millis, kind: TimerKind, ctx: TriggerContext) -> Verdict:
        """Close with what came since the last firing, if anything did, unless more came to fire."""
        if kind != "event" or at != ctx.state.get("deadline"):
            return Verdict.CONTINUE
        ctx.state.pop("deadline")
        since = ctx.state.pop("since", None)
        return Verdict.PURGE if since is None else Verdict.FIRE_AND_PURGE

    def on_merge(self, ctx: TriggerContext) -> Verdict:
        """Count on from all that is there."""
        ctx.state["since"] = ctx.count % self.count
        return Verdict.CONTINUE


class OnValue(Trigger):
    """Fires when an event fulfils a condition."""

    def __init__(self, condition: Callable[[Any], bool], *, purge: bool = False) -> None:
        """Fire, and purge as well where that is asked, when `condition` holds of an event."""
        self.condition = condition
        self.verdict = Verdict.FIRE_AND_PURGE if purge else Verdict.FIRE

    def on_event(self, event: Any, ctx: TriggerContext) -> Verdict:
        """Fire for an event that fulfils the condition."""
        return self.verdict if self.condition(event) else Verdict.CONTINUE
