"""Passengers of all yellow taxis per half hour, as the Numenta Anomaly Benchmark counted them."""

from __future__ import annotations

from datetime import date
from typing import Final

from assets.taxi.trips.ingest import TLC
from assets.taxi.trips.new_york import ZONE, clock_of
from rivermark import Contract, Field, Rule, expect, readers
from rivermark.sources import FileSource

PASSENGER_COUNTS: Final = TLC.ingest(
    "taxi/passenger_counts",
    source=FileSource(folder="taxi/passengers", pattern="*.csv,*.csv.gz", format="csv"),
    contract=Contract(
        fields=(
            Field(
                "bucket_start",
                "timestamp",
                ("timestamp",),
                required=True,
                read=readers.local_timestamp(ZONE),
                description="Start of the half hour, UTC; the file has New York's wall clock.",
            ),
            Field("passengers", "long", ("value",), required=True, description="Passengers."),
        ),
        event_time="bucket_start",
        keys=("bucket_start",),
        rules=(
            Rule(
                "two_hours_in_one",
                f"{clock_of('bucket_start + INTERVAL 1 HOUR')} = {clock_of('bucket_start')}",
                "flag",
                "The autumn clock change put two real hours under this local time: the count is of "
                "both, and the hour after it (UTC) has no bucket.",
            ),
            Rule(
                "negative_count",
                "passengers < 0",
                "quarantine",
                "A count of passengers cannot be negative.",
            ),
        ),
    ),
    lateness=None,
    description=(
        "Passengers of all yellow taxis per half hour, July 2014 to January 2015 "
        "(Numenta Anomaly Benchmark, from TLC data)."
    ),
    days=TLC.days("bucket_start", start=date(2014, 7, 1)),
    expect=[
        expect.unique(("bucket_start",)),
        expect.between("passengers", 0, 100_000, severity="warning"),
    ],
)
