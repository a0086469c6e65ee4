"""Triggers made of other triggers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rivermark.process.api.context import TimerKind
from rivermark.process.instants import Millis
from rivermark.process.windows.trigger import Trigger, TriggerContext, Verdict


class Purging(Trigger):
    """Another trigger, with its window purged whenever it fires."""

    def __init__(self, trigger: Trigger) -> None:
        """Take the trigger that decides."""
        self.trigger = trigger

    def on_event(self, event: Any, ctx: TriggerContext) -> Verdict:
        """As the other, purging."""
        return _purged(self.trigger.on_event(event, ctx))

    def on_timer(self, at: Millis, kind: TimerKind, ctx: TriggerContext) -> Verdict:
        """As the other, purging."""
        return _purged(self.trigger.on_timer(at, kind, ctx))

    def on_merge(self, ctx: TriggerContext) -> Verdict:
        """As the other, purging."""
        return _purged(self.trigger.on_merge(ctx))


class AnyOf(Trigger):
    """Several triggers; what any of them wants is done."""

    def __init__(self, *triggers: Trigger) -> None:
        """Give each of them a memory of its own."""
        self.triggers = triggers

    def on_event(self, event: Any, ctx: TriggerContext) -> Verdict:
        """Ask all of them."""
        return self._all(ctx, lambda trigger, own: trigger.on_event(event, own))

    def on_timer(self, at: Millis, kind: TimerKind, ctx: TriggerContext) -> Verdict:
        """Ask all of them."""
        return self._all(ctx, lambda trigger, own: trigger.on_timer(at, kind, own))

    def on_merge(self, ctx: TriggerContext) -> Verdict:
        """Ask all of them."""
        return self._all(ctx, lambda trigger, own: trigger.on_merge(own))

    def _all(
        self, ctx: TriggerContext, ask: Callable[[Trigger, TriggerContext], Verdict]
    ) -> Verdict:
        verdict = Verdict.CONTINUE
        for place, trigger in enumerate(self.triggers):
            verdict |= ask(trigger, ctx.part(f"{place}."))
        return verdict


def _purged(verdict: Verdict) -> Verdict:
    return verdict | Verdict.PURGE if Verdict.FIRE in verdict else verdict
