"""All streams of the trips domain, in the order in which a page lists them."""

from __future__ import annotations

from typing import Final

from assets.taxi.trips.debs import DEBS_TRIPS
from assets.taxi.trips.ingest import TRIP_RECORDS
from assets.taxi.trips.local_days import LOCAL_DAYS
from assets.taxi.trips.passenger_counts import PASSENGER_COUNTS
from assets.taxi.trips.payment_days import PAYMENT_DAYS
from assets.taxi.trips.seaborn import SEABORN_TRIPS
from assets.taxi.trips.tip_hours import TIP_HOURS
from assets.taxi.trips.trip_quality import TRIP_QUALITY
from assets.taxi.trips.trips import TRIPS
from assets.taxi.trips.zone_hours import ZONE_HOURS
from rivermark import AnyStream

STREAMS: Final[tuple[AnyStream, ...]] = (
    TRIP_RECORDS,
    TRIPS,
    ZONE_HOURS,
    TIP_HOURS,
    PAYMENT_DAYS,
    LOCAL_DAYS,
    TRIP_QUALITY,
    DEBS_TRIPS,
    SEABORN_TRIPS,
    PASSENGER_COUNTS,
)
