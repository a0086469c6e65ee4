"""The streams of ride, fare and trip events."""

from __future__ import annotations

from typing import Final

from assets.taxi.cleansing import CLEAN_FARES, CLEAN_RIDES
from assets.taxi.enrichment import RIDES_WITH_FARES
from assets.taxi.ingest import FARE_EVENTS, RIDE_EVENTS, TRIP_EVENTS
from assets.taxi.long_rides import LONG_RIDES
from assets.taxi.longest_rides import LONGEST_RIDES
from assets.taxi.tips import DRIVER_TIPS, HOURLY_WINNERS
from assets.taxi.zone_activity import ZONE_ACTIVITY
from rivermark import AnyStream

EVENT_STREAMS: Final[tuple[AnyStream, ...]] = (
    RIDE_EVENTS,
    FARE_EVENTS,
    CLEAN_RIDES,
    CLEAN_FARES,
    RIDES_WITH_FARES,
    LONG_RIDES,
    LONGEST_RIDES,
    DRIVER_TIPS,
    HOURLY_WINNERS,
    TRIP_EVENTS,
    ZONE_ACTIVITY,
)
