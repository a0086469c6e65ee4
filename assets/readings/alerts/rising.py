"""Rising temperatures: no lower reading of a sensor for a second after it began to rise."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Final

from assets.readings.alerts.reading import Reading
from assets.readings.sensors import Temperature
from rivermark.process import TTL, Context, KeyedProcess, Millis, Record, ValueState

RISE: Final = 1_000
"""Milliseconds that a rise must last."""

MEMORY: Final = timedelta(hours=1)


class Rise(Record):
    """A rise under way: when it began, from what, and the instant at which it will have lasted."""

    since: Millis
    from_temperature: Temperature
    deadline: Millis


class Rising(Record):
    """Sensors whose temperature did not fall for a second after it began to rise (Fahrenheit)."""

    sensor_id: str
    event_time: Annotated[Millis, "When the rise had lasted a second (UTC)."]
    since: Annotated[Millis, "When the temperature began to rise (UTC)."]
    from_temperature: Annotated[
        Temperature, "The temperature before the rise (degrees Fahrenheit)."
    ]
    temperature: Annotated[Temperature, "The last temperature of that second (degrees Fahrenheit)."]


class RisingTemperatures(KeyedProcess[Reading, Rising]):
    """Keeps a sensor's last temperature for an hour, and the rise that is under way.

    A lower reading cancels the alert; an equal one changes nothing; after an alert the next rise is
    a new one. Having no reading is something else than having read 0. A reading at the very
    instant of the deadline still counts.
    """

    key = "sensor_id"
    time = "event_time"
    order = "event_time"
    hold = True

    last: ValueState[Decimal] = ValueState(ttl=TTL(MEMORY))
    rise: ValueState[Rise]

    def on_event(self, event: Reading, ctx: Context[Rising]) -> None:
        """Start a rise or end one."""
        last, rise = self.last.value, self.rise.value
        self.last.value = event.temperature
        if last is None or event.temperature < last:
            if rise is not None:
                ctx.timers.event.delete(rise.deadline)
                self.rise.clear()
        elif event.temperature > last and rise is None:
            self.rise.value = Rise(event.event_time, last, event.event_time + RISE)
            ctx.timers.event.register(event.event_time + RISE)

    def on_timer(self, at: int, ctx: Context[Rising]) -> None:
        """Emit a rise that has lasted."""
        rise, last = self.rise.value, self.last.value
        self.rise.clear()
        if rise is not None and last is not None:
            ctx.emit(Rising(ctx.key, at, rise.since, rise.from_temperature, last))
