"""Tips by hour, of the trips on which tips are recorded at all: those paid by card."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from assets.taxi.trips.columns import COUNT, HOUR, SERVICE, SUM, hour_of, schema
from assets.taxi.trips.counting import TRIPS, count_of, is_counted, is_trip
from assets.taxi.trips.expected import KNOWN_SERVICE, ORDERED_HOUR
from assets.taxi.trips.ingest import TLC, TRIP_RECORDS
from assets.taxi.trips.payment import CARD
from assets.taxi.trips.twins import marked
from rivermark import expect

TIP_HOUR: Final = schema(
    *HOUR,
    SERVICE,
    TRIPS,
    ("card_trips", COUNT, "Trips paid by card, tipped or not."),
    ("tipped_trips", COUNT, "Trips paid by card with a tip above 0."),
    ("card_fare", SUM, "Fares paid by card (USD), refunds taken off, repeats left out."),
    (
        "tips",
        SUM,
        "Tips by card (USD), refunds taken off, repeats left out; empty without any card.",
    ),
    ("other_tips", SUM, "Tips in records not paid by card (USD): none are expected."),
)


def by_hour(marked_records: DataFrame) -> DataFrame:
    """Sum marked records' tips up by service and hour of the pickup."""
    card = F.coalesce(F.col("payment_type") == CARD, F.lit(False))
    return (
        marked_records.groupBy(*hour_of(F.col("pickup_at")), "service")
        .agg(
            count_of(is_trip()).alias("trips"),
            count_of(is_trip() & card).alias("card_trips"),
            count_of(is_trip() & card & (F.col("tip") > 0)).alias("tipped_trips"),
            F.sum(F.when(is_counted() & card, F.col("fare"))).cast(SUM).alias("card_fare"),
            F.sum(F.when(is_counted() & card, F.col("tip"))).cast(SUM).alias("tips"),
            F.sum(F.when(is_counted() & ~card, F.col("tip"))).cast(SUM).alias("other_tips"),
        )
        .select(*TIP_HOUR.names)
    )


def tip_hours(records: DataFrame) -> DataFrame:
    """Mark the twins among trip records, then sum their tips up by hour."""
    return records.transform(marked).transform(by_hour)


TIP_HOURS: Final = TLC.stream(
    reads=TRIP_RECORDS,
    build=tip_hours,
    writes=TLC.table(
        "taxi/tip_hours",
        TIP_HOUR,
        description=(
            "Tips by service and hour of the pickup (UTC windows, local hour beside). TLC records "
            "tips for card payments only: divide by card_trips or card_fare, never by trips."
        ),
        keys=("service", "window_end"),
    ),
    description="Tips of each hour, with the card trips that they belong to.",
    kind="refresh",
    expect=[
        ORDERED_HOUR,
        expect.no_rows_where("card_trips > trips", name="card trips are trips"),
        expect.no_rows_where("tipped_trips > card_trips", name="tipped trips are card trips"),
        expect.no_rows_where(
            "coalesce(other_tips, 0) <> 0",
            name="tips are recorded for cards only",
            at_most=10,
            severity="warning",
        ),
        KNOWN_SERVICE,
    ],
    may_be_empty=False,
)
