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
    """A hot reading in smoke; `level_time` is that of the level that held."""

    sensor_id: str
    event_time: int
    temperature: Decimal
    level_time: int


class SmokeAlerts(KeyedProcess[Reading, SmokeAlert]):
    """Keeps the smoke level alone. A level holds until the next one's time; at first it is low.

    At one instant the level comes before the readings.
    """

    order = "event_time"
    hold = True

    levels = Broadcast(SmokeLevel, time="event_time")
    readings = Input(Reading, key="sensor_id", time="event_time")

    smoke: BroadcastState[str, SmokeLevel]

    def on_levels(self, event: SmokeLevel, ctx: Context[SmokeAlert]) -> None:
        """Take over the level."""
        self.smoke["now"] = event

    def on_readings(self, event: Reading, ctx: Context[SmokeAlert]) -> None:
        """Alert for a hot reading while the level is high."""
        now = self.smoke.get("now")
        if now is not None and now.level == "High" and event.temperature > HOT:
            ctx.emit(
                SmokeAlert(event.sensor_id, event.event_time, event.temperature, now.event_time)
            )
