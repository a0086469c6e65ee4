"""Temperature jumps: a reading differs from its sensor's previous one by more than a threshold.

Thresholds come as a stream of their own, for one sensor or for all, and hold from their own time
on. Every alert says which threshold it was made with, and in which version of the rules.
"""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Final

from assets.readings.alerts.reading import Reading
from assets.readings.controls import Degrees
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

EVERY_SENSOR: Final = "*"
SILENCE: Final = timedelta(hours=1)


class Threshold(Record):
    """A threshold (degrees Fahrenheit) of a sensor, or of `*`: every one without its own.

    Zero removes it. The publisher of thresholds numbers their versions and sends those in force
    again from time to time, so that a replay from any day on knows them.
    """

    sensor_id: str
    event_time: Millis
    degrees: Degrees
    version: int


class Jump(Record):
    """A jump from one reading to the next, and the threshold that it exceeds."""

    sensor_id: str
    event_time: Millis
    temperature: Temperature
    before: Annotated[Temperature, "The sensor's reading before it (degrees Fahrenheit)."]
    difference: Annotated[Temperature, "How far the two readings lie apart (degrees Fahrenheit)."]
    threshold: Annotated[Degrees, "The threshold that the difference exceeds (degrees Fahrenheit)."]
    rule_version: Annotated[int, "Version of that threshold."]


class TemperatureJumps(KeyedProcess[Reading, Jump]):
    """Keeps a sensor's last temperature for an hour after it: then the next one is a first again.

    Readings are compared in order of their time. A first reading never alerts; neither does one
    without a threshold, which is remembered all the same. At one instant the threshold comes first.
    `rule_version` is that of the threshold which was used.
    """

    order = "event_time"
    hold = True

    thresholds = Broadcast(Threshold, time="event_time")
    readings = Input(Reading, key="sensor_id", time="event_time")

    rules: BroadcastState[str, Threshold]
    last: ValueState[Decimal] = ValueState(ttl=TTL(SILENCE))

    def on_thresholds(self, event: Threshold, ctx: Context[Jump]) -> None:
        """Take over a threshold, or remove it."""
        if event.degrees:
            self.rules[event.sensor_id] = event
        else:
            self.rules.pop(event.sensor_id, None)

    def on_readings(self, event: Reading, ctx: Context[Jump]) -> None:
        """Compare a reading with the one before."""
        before = self.last.value
        self.last.value = event.temperature
        rule = self.rules.get(event.sensor_id) or self.rules.get(EVERY_SENSOR)
        if before is None or rule is None:
            return
        difference = abs(event.temperature - before)
        if difference > rule.degrees:
            ctx.emit(
                Jump(
                    event.sensor_id,
                    event.event_time,
                    event.temperature,
                    before,
                    difference,
                    rule.degrees,
                    rule.version,
                )
            )
