"""Smoke: hot readings while the smoke level, one for all sensors, is high.

The level is joined as of each reading's time, so a replay gives the same alerts.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Final, Literal

from assets.readings.alerts.reading import Reading
from assets.readings.sensors import Temperature
from rivermark.process import (
    TTL,
    Broadcast,
    BroadcastState,
    Context,
    Input,
    KeyedProcess,
    Millis,
    Record,
    ValueState,
)

HOT: Final = Decimal(100)
"""Degrees Fahrenheit above which a reading is hot."""

Level = Literal["High", "Low"]


class SmokeLevel(Record):
    """The smoke level from `event_time` on."""

    event_time: Millis
    level: Level


class SmokeAlert(Record):
    """Readings above 100 degrees Fahrenheit while the smoke level of their time was high."""

    sensor_id: str
    event_time: Millis
    temperature: Temperature
    level_time: Annotated[Millis, "From when on the smoke level was high (UTC)."]


class SmokeAlerts(KeyedProcess[Reading, SmokeAlert]):
    """Keeps the smoke level, and for a minute that a sensor has alerted: repeats do not again.

    A level holds until the next one's time; at first it is low. At one instant the level comes
    before the readings.
    """

    order = "event_time"
    hold = True

    levels = Broadcast(SmokeLevel, time="event_time")
    readings = Input(Reading, key="sensor_id", time="event_time")

    smoke: BroadcastState[str, SmokeLevel]
    alerted: ValueState[int] = ValueState(ttl=TTL(timedelta(minutes=1)))

    def on_levels(self, event: SmokeLevel, ctx: Context[SmokeAlert]) -> None:
        """Take over the level."""
        self.smoke["now"] = event

    def on_readings(self, event: Reading, ctx: Context[SmokeAlert]) -> None:
        """Alert for a hot reading while the level is high."""
        now = self.smoke.get("now")
        if now is None or now.level != "High" or event.temperature <= HOT:
            return
        if self.alerted.value != event.sequence:
            self.alerted.value = event.sequence
            ctx.emit(
                SmokeAlert(event.sensor_id, event.event_time, event.temperature, now.event_time)
            )
