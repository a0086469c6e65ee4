"""A window: a stretch of time, or of a key's whole life."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from rivermark.process.instants import BEGINNING, END_OF_TIME, Millis, moment


class Window(NamedTuple):
    """From `start` to just before `end`, in milliseconds since the epoch (UTC).

    A window is complete when the watermark reaches its end, as in Spark's own windows.
    """

    start: Millis
    end: Millis

    @property
    def last(self) -> Millis:
        """The last instant inside.

        As the event time of a result it lets windows of the same size follow.
        """
        return self.end - 1

    @property
    def starts_at(self) -> datetime:
        """The start as a datetime (UTC)."""
        return moment(self.start)

    @property
    def ends_at(self) -> datetime:
        """The end, not included, as a datetime (UTC)."""
        return moment(self.end)

    def touches(self, other: Window) -> bool:
        """Whether two windows overlap or meet: sessions exactly one gap apart are one."""
        return self.start <= other.end and other.start <= self.end

    def with_(self, other: Window) -> Window:
        """The window that spans both."""
        return Window(min(self.start, other.start), max(self.end, other.end))


GLOBAL: Final = Window(BEGINNING, END_OF_TIME)
"""The one window of a key that never ends."""
