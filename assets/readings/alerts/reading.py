"""The reading as the rules see it."""

from __future__ import annotations

from assets.readings.sensors import Temperature
from rivermark.process import Millis, Record


class Reading(Record):
    """A temperature, exact; two of one sensor and `sequence` are one that was sent twice."""

    sensor_id: str
    event_time: Millis
    temperature: Temperature
    sequence: int
