"""Reach of sessions beyond the days that are computed of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rivermark.process.instants import Millis
from rivermark.process.windows.window import Window


@dataclass
class SessionMeasure:
    """Reports how far each session that touches the days [begin, until) reaches beyond them.

    In milliseconds: `before` the days, with the gap, and `after` them; `open_until` is when one
    ends that begins in the days.
    """

    begin: Millis
    until: Millis
    report: Callable[[dict[str, float]], None]
    gap: Millis = 0
    """The longest so far: an event that was not read may lie so far away and yet belong to one."""

    def event(self, window: Window) -> None:
        """Take the window of an event alone, from it to a gap after it."""
        self.gap = max(self.gap, window.end - window.start)

    def closed(self, window: Window) -> None:
        """Take a session that is complete."""
        if window.start >= self.until or window.end < self.begin:
            return
        measured: dict[str, float] = {
            "before": self.begin - (window.start - self.gap),
            "after": window.end - self.until,
        }
        if window.start >= self.begin:
            measured["open_until"] = window.end
        self.report(measured)
