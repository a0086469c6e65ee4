"""What the tests of windows share: readings, and rows that count them."""

from __future__ import annotations

from typing import Any

import msgspec

from rivermark.process import SideOutput
from rivermark.process.windows import WindowAggregate, WindowContext, WindowProcess

SECOND = 1_000


class Reading(msgspec.Struct, frozen=True):
    sensor: str
    at: int
    value: int = 0


class Counted(msgspec.Struct, frozen=True):
    sensor: str
    end: int
    count: int
    mark: str = "first"


class Listed(msgspec.Struct, frozen=True):
    sensor: str
    values: tuple[int, ...]
    mark: str = "first"


class Counts(WindowAggregate[Reading, int, Counted]):
    """Counts readings of a sensor; the tests set windows and triggers. Seconds since the epoch."""

    key = "sensor"
    time = "at"
    late = SideOutput("late_readings", Reading)

    def update(self, value: int | None, event: Reading) -> int:
        return (value or 0) + 1

    def combine(self, one: int, other: int) -> int:
        return one + other

    def on_window(self, value: int, ctx: WindowContext[Counted]) -> None:
        ctx.emit(Counted(ctx.key, ctx.window.end // SECOND, value, ctx.mark))


class Lists(WindowProcess[Reading, Listed]):
    """Lists a window's values."""

    key = "sensor"
    time = "at"
    late = SideOutput("late_readings", Reading)

    def on_window(self, events: list[Reading], ctx: WindowContext[Listed]) -> None:
        ctx.emit(Listed(ctx.key, tuple(each.value for each in events), ctx.mark))


def at(*seconds: float, sensor: str = "a") -> list[Reading]:
    """Readings at these seconds, with their number as value."""
    return [Reading(sensor, int(s * SECOND), n) for n, s in enumerate(seconds, 1)]


def ends(rows: list[Any]) -> list[tuple[int, int]]:
    """Ends (seconds) and counts of rows."""
    return [(each.end, each.count) for each in rows]
