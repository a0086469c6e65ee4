"""The streams of temperature readings."""

from __future__ import annotations

from typing import Final

from assets.readings.averages import AVERAGES_5S
from assets.readings.extremes import MINUTE_EXTREMES
from assets.readings.gaps import GAPS
from assets.readings.hourly import HOURLY
from assets.readings.ingest import (
    LIBRARY,
    OCCUPANCY,
    OCCUPANCY_RESAVED,
    SENSOR_READINGS,
    TEMPERATURES,
)
from assets.readings.library import LIBRARY_HOURS
from rivermark import AnyStream

READING_STREAMS: Final[tuple[AnyStream, ...]] = (
    SENSOR_READINGS,
    AVERAGES_5S,
    MINUTE_EXTREMES,
    TEMPERATURES,
    HOURLY,
    GAPS,
    LIBRARY,
    LIBRARY_HOURS,
    OCCUPANCY,
    OCCUPANCY_RESAVED,
)
