"""Times and dates: clocks of zones, seconds since 1970, and days added."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import numpy as np

from rivermark.ingest.parse.lane.zones import Zone
from rivermark.ingest.parse.rules.numbers import SECOND
from rivermark.ingest.parse.rules.vector import Type, Untranslatable, Vector, both, either

TIMESTAMP: Final = Type("timestamp")
LATEST: Final = 253_402_300_800 * SECOND
"""The year 10,000, in microseconds; what is that far from 1970 is left to Spark."""
LAST_DAY: Final = 2_932_896
ZONE_NAME: Final = re.compile(r"UTC|[A-Z][A-Za-z]+/[A-Za-z_/]+")
"""Zones that are the same by Spark's own rules for names and by Java's."""

ZoneOf = Callable[[str], Zone]


def unix_seconds(value: Vector) -> Vector:
    """Whole seconds since 1970, rounded towards it."""
    if value.type != TIMESTAMP:
        raise Untranslatable(f"{value.type} as seconds")
    seconds = np.sign(value.values) * (np.abs(value.values) // SECOND)
    return Vector(Type("integer", 64), seconds, value.valid, value.doubtful)


def shifted(name: str, value: Vector, zone: Zone) -> Vector:
    """FromUTCTimestamp or ToUTCTimestamp; in doubt outside of 1970 to 2037 and at clock changes."""
    if value.type != TIMESTAMP:
        raise Untranslatable(f"{value.type} in a zone")
    seconds = value.values // SECOND
    if name == "FromUTCTimestamp":
        offsets, clear = zone.offsets_at(seconds)
        values = value.values + offsets * SECOND
    else:
        offsets, clear = zone.offsets(seconds)
        values = value.values - offsets * SECOND
    doubt = ~clear if value.valid is None else ~clear & value.valid
    return Vector(TIMESTAMP, values, value.valid, value.doubtful).with_doubt(doubt)


def later(value: Vector, interval: Vector) -> Vector:
    """A time with an interval of days and below added, in UTC."""
    if value.type != TIMESTAMP or interval.type.kind != "interval":
        raise Untranslatable(f"{value.type} and {interval.type}")
    far = (np.abs(value.values) >= LATEST) | (np.abs(interval.values) >= LATEST)
    valid, doubtful = both(value.valid, interval.valid), either(value.doubtful, interval.doubtful)
    return Vector(TIMESTAMP, value.values + interval.values, valid, doubtful).with_doubt(far)


def day_moved(name: str, day: Vector, days: Vector) -> Vector:
    """DateAdd or DateSub."""
    if day.type != Type("date") or days.type.kind != "integer":
        raise Untranslatable(f"{day.type} and {days.type}")
    values = day.values + days.values if name == "DateAdd" else day.values - days.values
    far = np.abs(values) > LAST_DAY
    valid, doubtful = both(day.valid, days.valid), either(day.doubtful, days.doubtful)
    return Vector(day.type, values, valid, doubtful).with_doubt(far)
