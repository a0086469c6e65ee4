"""Trips by type of payment and New York day."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

from assets.taxi.trips.columns import DAY, SERVICE, TEXT, day_of, schema
from assets.taxi.trips.counting import SUMMARY, TIPS, sum_of, summary
from assets.taxi.trips.expected import FLAGGED_ARE_TRIPS, KNOWN_SERVICE, ORDERED_DAY
from assets.taxi.trips.ingest import TLC, TRIP_RECORDS
from assets.taxi.trips.payment import payment_name
from assets.taxi.trips.twins import marked
from rivermark import expect

PAYMENT_DAY: Final = schema(
    *DAY,
    SERVICE,
    ("payment_type", IntegerType(), "TLC's code; empty where the record has none."),
    ("payment", TEXT, "Its name; 'not recorded' where the record has none."),
    *SUMMARY,
    TIPS,
)


def by_payment_and_day(marked_records: DataFrame) -> DataFrame:
    """Sum marked records up by service, payment type and local day of the pickup."""
    return (
        marked_records.groupBy(*day_of(F.col("pickup_at")), "service", "payment_type")
        .agg(*summary(), sum_of("tip").alias("tips"))
        .withColumn("payment", payment_name(F.col("payment_type")))
        .select(*PAYMENT_DAY.names)
    )


def payment_days(records: DataFrame) -> DataFrame:
    """Mark the twins among trip records, then sum them up by payment and day."""
    return records.transform(marked).transform(by_payment_and_day)


PAYMENT_DAYS: Final = TLC.stream(
    reads=TRIP_RECORDS,
    build=payment_days,
    writes=TLC.table(
        "taxi/payment_days",
        PAYMENT_DAY,
        description=(
            "Trips and money by service, payment type and New York day. A refund stands in the row "
            "of its own payment type, which is often another (dispute, no charge) than the trip's."
        ),
        keys=("service", "payment_type", "day_end"),
        event_time="day_end",
        days="day_start",
    ),
    description="Trips by type of payment on each New York day.",
    kind="refresh",
    expect=[
        ORDERED_DAY,
        expect.in_set("hours_in_day", (23, 24, 25)),
        expect.not_null("payment"),
        FLAGGED_ARE_TRIPS,
        KNOWN_SERVICE,
    ],
    may_be_empty=False,
)
