"""The taxi trips of seaborn's examples: March 2019, cleaned by their makers, zones by name."""

from __future__ import annotations

from datetime import date
from typing import Final

from pyspark.sql.types import IntegerType, StringType, TimestampType

from assets.taxi.trips.contract import MILES, MONEY
from assets.taxi.trips.ingest import GROUP
from assets.taxi.trips.new_york import ZONE
from assets.taxi.trips.payment import payment_code
from assets.taxi.trips.suites import SEABORN_TRIPS_SUITE
from rivermark import FileSource
from rivermark.model.contract import Contract, Field
from rivermark.model.field_readers import local_timestamp
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily

_LOCAL: Final = local_timestamp(ZONE)

SEABORN_TRIPS: Final = Ingest(
    name="taxi/seaborn_trips",
    source=FileSource(folder="taxi/seaborn", format="csv"),
    contract=Contract(
        fields=(
            Field(
                "pickup_at",
                TimestampType(),
                ("pickup",),
                required=True,
                read=_LOCAL,
                description="UTC.",
            ),
            Field(
                "dropoff_at",
                TimestampType(),
                ("dropoff",),
                required=True,
                read=_LOCAL,
                description="UTC.",
            ),
            Field("color", StringType(), description="yellow or green."),
            Field("passengers", IntegerType(), description="As the driver entered."),
            Field("distance_miles", MILES, ("distance",), description="Miles."),
            Field(
                "payment_type",
                IntegerType(),
                ("payment",),
                read=payment_code,
                description="TLC's code for the word in the file.",
            ),
            *(Field(name, MONEY, description="USD.") for name in ("fare", "tip", "tolls", "total")),
            *(
                Field(
                    f"{end}_{part}", StringType(), description="A name, not unique; may be empty."
                )
                for end in ("pickup", "dropoff")
                for part in ("zone", "borough")
            ),
        ),
        event_time="pickup_at",
    ),
    lateness=None,
    description=(
        "Seaborn's cleaned sample of 6,433 trips of March 2019. Kept apart from taxi/trip_records: "
        "it names zones instead of numbering them and leaves out what its makers found odd, and "
        "together its trips would be counted twice."
    ),
    group=GROUP,
    days=Daily(column="pickup_at", start=date(2019, 1, 1), zone=ZONE),
    suite=SEABORN_TRIPS_SUITE,
)
