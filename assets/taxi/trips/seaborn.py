"""The taxi trips of seaborn's examples: March 2019, cleaned by their makers, zones by name."""

from __future__ import annotations

from datetime import date
from typing import Final

from assets.taxi.trips.contract import MILES, MONEY
from assets.taxi.trips.ingest import TLC
from assets.taxi.trips.new_york import ZONE
from assets.taxi.trips.payment import PAYMENT_CODE
from rivermark import Contract, Field, expect, readers
from rivermark.sources import FileSource

_LOCAL: Final = readers.local_timestamp(ZONE)

SEABORN_TRIPS: Final = TLC.ingest(
    "taxi/seaborn_trips",
    source=FileSource(folder="taxi/seaborn", format="csv"),
    contract=Contract(
        fields=(
            Field(
                "pickup_at",
                "timestamp",
                ("pickup",),
                required=True,
                read=_LOCAL,
                description="UTC.",
            ),
            Field(
                "dropoff_at",
                "timestamp",
                ("dropoff",),
                required=True,
                read=_LOCAL,
                description="UTC.",
            ),
            Field("color", "string", description="yellow or green."),
            Field("passengers", "int", description="As the driver entered."),
            Field("distance_miles", MILES, ("distance",), description="Miles."),
            Field(
                "payment_type",
                "int",
                ("payment",),
                read=PAYMENT_CODE,
                description="TLC's code for the word in the file.",
            ),
            *(Field(name, MONEY, description="USD.") for name in ("fare", "tip", "tolls", "total")),
            *(
                Field(f"{end}_{part}", "string", description="A name, not unique; may be empty.")
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
    days=TLC.days("pickup_at", start=date(2019, 1, 1)),
    expect=[
        expect.pair_ordered("pickup_at", "dropoff_at"),
        expect.between("fare", 0, 200),
        expect.in_set("color", ("yellow", "green")),
    ],
)
