"""Triggers that decide by the clock, by the number of events, or by their values."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from rivermark.model.errors import DeclarationError
from rivermark.process.instants import Millis, span
from rivermark.process.timers import TimeDomain
from rivermark.process.windows.trigger import Trigger, TriggerContext, TriggerResult


class Never(Trigger):
    """Never fires."""

    def on_event(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        """Continue."""
        return TriggerResult.CONTINUE


class AtEnd(Trigger):
    """Fires when the clock reaches the window's end, and again for each allowed late event."""

    def __init__(self, clock: TimeDomain = "event") -> None:
        self.clock = clock

    def on_event(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        """Fire at once in a window that has ended; otherwise wait for its end."""
        if ctx.window.end <= ctx.now(self.clock):
            return TriggerResult.FIRE
        ctx.register(ctx.window.end, self.clock)
        return TriggerResult.CONTINUE

    def on_timer(self, at: Millis, kind: TimeDomain, ctx: TriggerContext) -> TriggerResult:
        """Fire at the end."""
        due = kind == self.clock and at == ctx.window.end
        return TriggerResult.FIRE if due else TriggerResult.CONTINUE

    def on_merge(self, ctx: TriggerContext) -> TriggerResult:
        """Wait for the end of the merged window."""
        if ctx.window.end > ctx.now(self.clock):
            ctx.register(ctx.window.end, self.clock)
        return TriggerResult.CONTINUE


class Every(Trigger):
    """Fires each `interval` from the window's first event on, if events came since, until its end.

    An early result: put it beside `AtEnd` with `AnyOf`. A window merged from several goes on with
    the earliest instant that any of them waited for.
    """

    def __init__(self, interval: timedelta, clock: TimeDomain = "event") -> None:
        self.millis = span(interval, "the interval of early results")
        self.clock = clock

    def on_event(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        """Start counting time at the first event."""
        if "next" not in ctx.state:
            self._wait(ctx, ctx.at if self.clock == "event" else ctx.processing_time)
        return TriggerResult.CONTINUE

    def on_timer(self, at: Millis, kind: TimeDomain, ctx: TriggerContext) -> TriggerResult:
        """Fire if anything is new, and wait for the next instant."""
        if kind != self.clock or at != ctx.state.get("next"):
            return TriggerResult.CONTINUE
        new = ctx.count != ctx.state.get("seen")
        ctx.state["seen"] = ctx.count
        self._wait(ctx, at)
        return TriggerResult.FIRE if new else TriggerResult.CONTINUE

    def on_merge(self, ctx: TriggerContext) -> TriggerResult:
        """Wait for the earliest of the instants; new is what none of the windows had fired."""
        waits = [int(each["next"] or 0) for each in ctx.merged if "next" in each]
        ctx.state["seen"] = sum(int(each.get("seen") or 0) for each in ctx.merged)
        if waits:
            self._wait(ctx, min(waits) - self.millis)
        return TriggerResult.CONTINUE

    def _wait(self, ctx: TriggerContext, since: Millis) -> None:
        following = since + self.millis
        ctx.state["next"] = following
        if following < ctx.window.end:
            ctx.register(following, self.clock)


class EveryCount(Trigger):
    """Fires at every `count` events; with a time-out also that long after the first of them."""

    def __init__(self, count: int, *, purge: bool = False, timeout: Millis | None = None) -> None:
        if count < 1:
            raise DeclarationError("a trigger counts to at least 1")
        self.count = count
        self.result = TriggerResult.FIRE_AND_PURGE if purge else TriggerResult.FIRE
        self.timeout = timeout

    def on_event(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        """Fire when enough events came since the last firing."""
        since = int(ctx.state.get("since") or 0) + 1
        if since >= self.count:
            ctx.state.pop("since", None)
            ctx.state.pop("deadline", None)
            if TriggerResult.PURGE not in self.result:
                self._wait(ctx)
            return self.result
        ctx.state["since"] = since
        if since == 1:
            self._wait(ctx)
        return TriggerResult.CONTINUE

    def _wait(self, ctx: TriggerContext) -> None:
        if self.timeout is not None:
            self._close_at(ctx.at + self.timeout, ctx)

    def _close_at(self, deadline: Millis, ctx: TriggerContext) -> None:
        ctx.state["deadline"] = deadline
        ctx.register(deadline)

    def on_timer(self, at: Millis, kind: TimeDomain, ctx: TriggerContext) -> TriggerResult:
        """Close with what came since the last firing, if anything did, unless more came to fire."""
        if kind != "event" or at != ctx.state.get("deadline"):
            return TriggerResult.CONTINUE
        ctx.state.pop("deadline")
        since = ctx.state.pop("since", None)
        return TriggerResult.PURGE if since is None else TriggerResult.FIRE_AND_PURGE

    def on_merge(self, ctx: TriggerContext) -> TriggerResult:
        """Count on from what no window had fired, to the earliest of their time-outs."""
        since = sum(int(each.get("since") or 0) for each in ctx.merged)
        if since:
            ctx.state["since"] = since
        deadlines = [int(each["deadline"] or 0) for each in ctx.merged if "deadline" in each]
        if deadlines:
            self._close_at(min(deadlines), ctx)
        return TriggerResult.CONTINUE


class OnValue(Trigger):
    """Fires when an event fulfils a condition."""

    def __init__(self, condition: Callable[[Any], bool], *, purge: bool = False) -> None:
        self.condition = condition
        self.result = TriggerResult.FIRE_AND_PURGE if purge else TriggerResult.FIRE

    def on_event(self, event: Any, ctx: TriggerContext) -> TriggerResult:
        """Fire for an event that fulfils the condition."""
        return self.result if self.condition(event) else TriggerResult.CONTINUE
