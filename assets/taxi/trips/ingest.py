"""Trip records come in: months of yellow and green trips, as TLC publishes or others cut them."""

from __future__ import annotations

from datetime import date
from typing import Final

from assets.taxi.trips import payment, rules
from assets.taxi.trips.contract import TRIP_RECORD
from assets.taxi.trips.new_york import ZONE
from rivermark import Domain, expect
from rivermark.sources import FileSource

TLC: Final = Domain("taxi_trips", first_day=date(2009, 1, 1), zone=ZONE)

TRIP_RECORDS: Final = TLC.ingest(
    "taxi/trip_records",
    source=FileSource(folder="taxi/trips", format=None),
    contract=TRIP_RECORD,
    lateness=None,
    description=(
        "Yellow and green taxi trips as TLC's vendors recorded them, one row a record, typed and "
        "flagged. Times are UTC; the file's New York wall-clock texts stand beside them. Refunds, "
        "repeats and doubtful values are all here: see the flags, and taxi/trips."
    ),
    days=TLC.days("pickup_at"),
    expect=[
        expect.unique(("_file", "_row")),
        expect.between(
            "passengers",
            1,
            rules.MOST_PASSENGERS,
            mostly=0.9,
            allow_null_share=0.3,
            severity="warning",
        ),
        expect.between(
            "distance_miles",
            0,
            rules.LONGEST_MILES,
            mostly=0.998,
            severity="warning",
        ),
        expect.in_set(
            "payment_type", tuple(payment.NAMES), allow_null_share=0.15, severity="warning"
        ),
        expect.between("fare", 0, mostly=0.95, allow_null_share=0.01, severity="warning"),
    ],
    may_be_empty=False,
)
"""One ingest for both services and every layout, because a refreshed table reads one input and a
file may mix the services. A dump is complete in itself: nothing in it is late."""
