"""Trips and revenue by pickup zone and hour."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from assets.taxi.trips.columns import HOUR, SERVICE, TEXT, hour_of, schema
from assets.taxi.trips.counting import SUMMARY, summary
from assets.taxi.trips.expected import FLAGGED_ARE_TRIPS, KNOWN_SERVICE, ORDERED_HOUR
from assets.taxi.trips.ingest import TLC, TRIP_RECORDS
from assets.taxi.trips.twins import marked
from assets.taxi.trips.zones import zone
from rivermark import expect

ZONE_HOUR: Final = schema(
    *HOUR,
    SERVICE,
    ("pickup_zone_id", IntegerType(), "Taxi zone of the pickup; 264 and 265 are no places."),
    ("borough", TEXT, "Its borough; empty for a number not in TLC's table."),
    ("zone", TEXT, "Its name, not unique; 'NA' and 'NV' are TLC's words."),
    *SUMMARY,
)


def by_zone_and_hour(marked_records: DataFrame) -> DataFrame:
    """Sum marked records up by service, pickup zone and hour of the pickup."""
    place = zone(F.col("pickup_zone_id"))
    return (
        marked_records.groupBy(*hour_of(F.col("pickup_at")), "service", "pickup_zone_id")
        .agg(*summary())
        .withColumns({"borough": place["borough"], "zone": place["zone"]})
        .select(*ZONE_HOUR.names)
    )


def zone_hours(records: DataFrame) -> DataFrame:
    """Mark the twins among trip records, then sum them up by zone and hour."""
    return records.transform(marked).transform(by_zone_and_hour)


ZONE_HOURS: Final = TLC.stream(
    reads=TRIP_RECORDS,
    build=zone_hours,
    writes=TLC.table(
        "taxi/zone_hours",
        ZONE_HOUR,
        description=(
            "Trips and revenue by service, pickup zone and hour. Hours are UTC windows; local_hour "
            "names them on New York's clock, where the autumn change gives two hours of one name. "
            "Flagged trips count, and `flagged` tells how many; unknown zones have their own rows."
        ),
        keys=("service", "pickup_zone_id", "window_end"),
    ),
    description="Trips and revenue of each pickup zone and hour.",
    kind="refresh",
    expect=[
        ORDERED_HOUR,
        expect.not_null("local_hour"),
        expect.between("trips", 0),
        FLAGGED_ARE_TRIPS,
        expect.not_null("pickup_zone_id", mostly=0.99, severity="warning"),
        KNOWN_SERVICE,
    ],
    may_be_empty=False,
)
