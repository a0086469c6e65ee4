"""Sensor readings for tests, told by time and temperature."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import count

from assets.readings.ingest import LATENESS, SENSOR_READINGS
from tests.spark.helpers.micro_batches import Feed, Rows

MIDNIGHT = datetime(2024, 3, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)

Told = tuple[timedelta, str]


def readings(*batches: Sequence[Told], sensor: str = "sensor_1") -> Feed:
    """A feed of one sensor: per batch the time since midnight and the temperature (F) of each."""
    numbers = count(1)
    rows: list[Rows] = [
        [
            {
                "sensor_id": sensor,
                "event_time": MIDNIGHT + after,
                "temperature": Decimal(degrees),
                "sequence": next(numbers),
            }
            for after, degrees in batch
        ]
        for batch in batches
    ]
    return Feed(SENSOR_READINGS.admitted.schema, "event_time", LATENESS, rows)


def at(after: timedelta) -> datetime:
    """A time since midnight as Spark gives it."""
    return (MIDNIGHT + after).replace(tzinfo=None)
