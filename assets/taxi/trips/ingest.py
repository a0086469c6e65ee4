"""Trip records come in: months of yellow and green trips, as TLC publishes or others cut them."""

from __future__ import annotations

from datetime import date
from typing import Final

from assets.taxi.trips.contract import TRIP_RECORD
from assets.taxi.trips.new_york import ZONE
from assets.taxi.trips.suites import TRIP_RECORDS_SUITE
from rivermark import FileSource
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily

GROUP: Final = "taxi_trips"
FIRST_DAY: Final = date(2009, 1, 1)

TRIP_RECORDS: Final = Ingest(
    name="taxi/trip_records",
    source=FileSource(folder="taxi/trips", format=None),
    contract=TRIP_RECORD,
    lateness=None,
    description=(
        "Yellow and green taxi trips as TLC's vendors recorded them, one row a record, typed and "
        "flagged. Times are UTC; the file's New York wall-clock texts stand beside them. Refunds, "
        "repeats and doubtful values are all here: see the flags, and taxi/trips."
    ),
    group=GROUP,
    days=Daily(column="pickup_at", start=FIRST_DAY, zone=ZONE),
    suite=TRIP_RECORDS_SUITE,
)
"""One ingest for both services and every layout, because a refreshed table reads one input and a
file may mix the services. A dump is complete in itself: nothing in it is late."""
