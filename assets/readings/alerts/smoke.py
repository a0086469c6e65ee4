"""Smoke: hot readings while the smoke level, one for all sensors, is high.

The level is joined as of each reading's time, so a replay gives the same alerts.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final, Literal

import msgspec

from assets.readings.alerts.reading import Reading
from rivermark.process import Broadcast, BroadcastState, Context, Input, KeyedProcess

HOT: Final = Decimal(100)
"""Degrees Fahrenheit above which a reading is hot."""

Level = Literal["High", "Low"]


class SmokeLevel(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The smoke level from `event_time` on, milliseconds since the epoch (UTC)."""

    event_time: int
    level: Level


class SmokeAlert(msgspec.Struct, frozen=True):
    """A hot reading in smoke; `smoke_since` is when the level became high, its change counted."""

    sensor_id: str
    event_time: int
    temperature: Decimal
    smoke_since: int
    level_version: int


class Smoke(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The level that holds, and since when."""

    level: Level
    since: int


class SmokeAlerts(KeyedProcess[Reading, SmokeAlert]):
    """Keeps the smoke level alone. A level holds until the next one's time; at first it is low.

    At one instant the level comes before the readings.
    """

    order = "event_time"
    hold = True

    levels = Broadcast(SmokeLevel, time="event_time")
    readings = Input(Reading, key="sensor_id", time="event_time")

    smoke: BroadcastState[str, Smoke]

    def on_levels(self, event: SmokeLevel, ctx: Context[SmokeAlert]) -> None:
        """Take over a level that differs from the one before."""
        now = self.smoke.get("now")
        if event.level != ("Low" if now is None else now.level):
            self.smoke["now"] = Smoke(event.level, event.event_time)

    def on_readings(self, event: Reading, ctx: Context[SmokeAlert]) -> None:
        """Alert for a hot reading while the level is high."""
        now = self.smoke.get("now")
        if now is not None and now.level == "High" and event.temperature > HOT:
            ctx.emit(
                SmokeAlert(
                    event.sensor_id,
                    event.event_time,
                    event.temperature,
                    now.since,
                    self.smoke.version_of("now") or 0,
                )
            )
