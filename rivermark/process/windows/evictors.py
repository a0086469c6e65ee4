"""Evictors: which of a window's events its function sees, and which stay for the next firing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from rivermark.model.errors import DeclarationError
from rivermark.process.instants import Millis, span
from rivermark.process.windows.window import Window

Element = tuple[Millis, Any]
"""An event in a window, after its time."""


class Evictor:
    """Takes events out of a window, before its function sees them or after. Subclass it."""

    def before(self, elements: list[Element], window: Window) -> list[Element]:
        """The elements that the function sees and the window keeps."""
        return elements

    def after(self, elements: list[Element], window: Window) -> list[Element]:
        """The elements that the window keeps for its next firing."""
        return elements


class LastCount(Evictor):
    """Keeps the last `count` events, in order of arrival."""

    def __init__(self, count: int) -> None:
        if count < 1:
            raise DeclarationError("an evictor keeps at least one event")
        self.count = count

    def before(self, elements: list[Element], window: Window) -> list[Element]:
        """The last `count`."""
        return elements[-self.count :]


class LastSpan(Evictor):
    """Keeps the events of the last stretch of time, counted back from the newest one."""

    def __init__(self, of: timedelta) -> None:
        self.millis = span(of, "the span of an evictor")

    def before(self, elements: list[Element], window: Window) -> list[Element]:
        """Those less than the span older than the newest."""
        newest = max((at for at, _ in elements), default=0)
        return [each for each in elements if each[0] > newest - self.millis]
