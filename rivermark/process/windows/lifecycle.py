"""The life of windows: made by their first event, fired by their trigger, cleared by the clock."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, Generic, TypeVar

from rivermark.model.errors import DeclarationError
from rivermark.process.api.context import Context
from rivermark.process.api.side_outputs import SideOutput
from rivermark.process.api.state import MapState
from rivermark.process.instants import BEGINNING, END_OF_TIME, Millis, span_or_zero
from rivermark.process.keyed import KeyedProcess
from rivermark.process.timers import TimeDomain
from rivermark.process.windows.assigners import Assigner
from rivermark.process.windows.measure import SessionMeasure
from rivermark.process.windows.trigger import Trigger, TriggerContext, TriggerResult
from rivermark.process.windows.window import Pane, Window

E = TypeVar("E")
C = TypeVar("C")
Out = TypeVar("Out")


class Windowed(KeyedProcess[E, Out], Generic[E, C, Out]):
    """The base of window processes; `C` is what a window keeps of its events.

    A window is complete when its clock reaches its end. It is kept `allowed_lateness` longer, and
    each late event in that time may fire it again. An event all of whose windows are gone goes to
    the side output `late`; a process that names `late = None` counts it and drops it.
    """

    windows: ClassVar[Assigner]
    trigger: ClassVar[Trigger | None] = None
    allowed_lateness: ClassVar[timedelta] = timedelta(0)
    late: ClassVar[SideOutput[Any] | None]

    # They fire by the watermark; corrections and early results depend on the cut, as they must.
    hold: ClassVar[bool] = False

    panes: MapState[Window, Pane[C]]

    _trigger: ClassVar[Trigger]
    _lateness: ClassVar[Millis]
    _sessions: SessionMeasure | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        assigner = getattr(cls, "windows", None)
        if assigner is None:
            return
        if not assigner.endless and not hasattr(cls, "late"):
            raise DeclarationError(
                f"process '{cls.__name__}' does not say what becomes of late events: declare "
                'late = SideOutput("late_...", Event), or late = None to drop them'
            )
        cls._trigger = cls.trigger or assigner.trigger()
        cls._lateness = span_or_zero(cls.allowed_lateness, "allowed lateness")

    def measure_by(self, sessions: SessionMeasure) -> None:
        """Report each session to that, where days of a table are computed."""
        self._sessions = sessions

    def add(self, pane: Pane[C], event: E, at: Millis) -> None:
        """Add an event to what the pane keeps."""
        raise NotImplementedError

    def merge(self, pane: Pane[C], other: Pane[C]) -> None:
        """Add what another pane keeps to this one."""
        raise NotImplementedError

    def fire(self, window: Window, pane: Pane[C], ctx: Context[Out]) -> None:
        """Give the result of a window that has contents."""
        raise NotImplementedError

    def on_event(self, event: E, ctx: Context[Out]) -> None:
        """Add an event to its windows and ask their trigger."""
        windows = self.windows
        at = ctx.timestamp if windows.clock == "event" else ctx.processing_time
        now = BEGINNING if windows.endless else present(ctx, windows.clock)
        panes = self.panes
        kept = late = False
        for each in windows.assign(event, at):
            window = self._merged(each, at, ctx) if windows.merging else each
            if self._sessions is not None:
                self._sessions.event(each)
            if window.end + self._lateness <= now:
                late = True
                continue
            pane = panes.get(window)
            if pane is None:
                pane = self._open(window, ctx)
            self.add(pane, event, at)
            pane.count += 1
            trigger_context = TriggerContext(window, pane, at, ctx)
            self._obey(self._trigger.on_event(event, trigger_context), window, pane, ctx)
            kept = True
        if late and not kept and self.late is not None:
            ctx.output(self.late, event)

    def on_timer(self, at: Millis, ctx: Context[Out]) -> None:
        """Ask the trigger of each window that waits for this instant; clear those that are over."""
        kind = ctx.timer or "event"
        for window, pane in list(self.panes.items()):
            waiting = pane.event_timers if kind == "event" else pane.processing_timers
            if at in waiting:
                waiting.remove(at)
                trigger_context = TriggerContext(window, pane, at, ctx)
                self._obey(self._trigger.on_timer(at, kind, trigger_context), window, pane, ctx)
            if kind == self.windows.clock and self._end_of_life(window) <= at:
                if self._sessions is not None:
                    self._sessions.closed(window)
                self._close(window, ctx)

    def _open(self, window: Window, ctx: Context[Out]) -> Pane[C]:
        pane: Pane[C] = Pane()
        self.panes[window] = pane
        self._await_end(window, ctx)
        return pane

    def _await_end(self, window: Window, ctx: Context[Out]) -> None:
        end = self._end_of_life(window)
        if end < END_OF_TIME:
            _timers(ctx, self.windows.clock).register(end)

    def _end_of_life(self, window: Window) -> Millis:
        return END_OF_TIME if self.windows.endless else window.end + self._lateness

    def _obey(
        self, result: TriggerResult, window: Window, pane: Pane[C], ctx: Context[Out]
    ) -> None:
        if result is TriggerResult.CONTINUE:
            return
        if TriggerResult.FIRE in result and pane.contents is not None:
            self.fire(window, pane, ctx)
            if window.end <= present(ctx, self.windows.clock):
                pane.fired += 1
        if TriggerResult.PURGE in result:
            pane.contents = None
            if self.windows.endless and not pane.trigger and not pane.state:
                self._close(window, ctx)

    def _close(self, window: Window, ctx: Context[Out]) -> None:
        """Forget a window and the timers that no other window of the key waits for."""
        pane = self.panes.pop(window, None)
        if pane is None:
            return
        for kind, timers in (("event", pane.event_timers), ("processing", pane.processing_timers)):
            due = set(timers)
            if kind == self.windows.clock:
                due.add(self._end_of_life(window))
            for at in due:
                if not any(
                    self._waits(other, each, kind, at) for other, each in self.panes.items()
                ):
                    _timers(ctx, kind).delete(at)

    def _waits(self, window: Window, pane: Pane[C], kind: str, at: Millis) -> bool:
        timers = pane.event_timers if kind == "event" else pane.processing_timers
        return at in timers or (kind == self.windows.clock and self._end_of_life(window) == at)

    def _merged(self, window: Window, at: Millis, ctx: Context[Out]) -> Window:
        """The window joined with those of the key that it touches, and they with one another."""
        touching = [each for each in self.panes if each.touches(window)]
        whole = window
        for each in touching:
            whole = whole.with_(each)
        if not touching or touching == [whole]:
            return whole
        merged: Pane[C] = Pane()
        memories = []
        for each in sorted(touching):
            pane = self.panes[each]
            memories.append(pane.trigger)
            merged.absorb(pane, each)
            if pane.contents is not None:
                self.merge(merged, pane)
            self._close(each, ctx)
        self.panes[whole] = merged
        self._await_end(whole, ctx)
        trigger_context = TriggerContext(whole, merged, at, ctx, memories)
        self._obey(self._trigger.on_merge(trigger_context), whole, merged, ctx)
        return whole


def present(ctx: Context[Any], clock: TimeDomain) -> Millis:
    """The present of a clock: for a timer its own instant, however far the clock has gone on."""
    if ctx.timer == clock:
        return ctx.timestamp
    return ctx.watermark if clock == "event" else ctx.processing_time


def _timers(ctx: Context[Any], kind: TimeDomain | TimeDomain | str) -> Any:
    return ctx.timers.event if kind == "event" else ctx.timers.processing
