"""Passengers of all yellow taxis per half hour, as the Numenta Anomaly Benchmark counted them."""

from __future__ import annotations

from datetime import date
from typing import Final

from pyspark.sql import functions as F
from pyspark.sql.types import LongType, TimestampType

from assets.taxi.trips.ingest import GROUP
from assets.taxi.trips.new_york import ZONE, wall_clock
from assets.taxi.trips.suites import PASSENGER_COUNTS_SUITE
from rivermark import FileSource
from rivermark.model.contract import Contract, Field, Rule
from rivermark.model.field_readers import local_timestamp
from rivermark.model.stream import Ingest
from rivermark.model.table import Daily

PASSENGER_COUNTS: Final = Ingest(
    name="taxi/passenger_counts",
    source=FileSource(folder="taxi/passengers", pattern="*.csv,*.csv.gz", format="csv"),
    contract=Contract(
        fields=(
            Field(
                "bucket_start",
                TimestampType(),
                ("timestamp",),
                required=True,
                read=local_timestamp(ZONE),
                description="Start of the half hour, UTC; the file has New York's wall clock.",
            ),
            Field("passengers", LongType(), ("value",), required=True, description="Passengers."),
        ),
        event_time="bucket_start",
        keys=("bucket_start",),
        rules=(
            Rule(
                "two_hours_in_one",
                lambda: (
                    wall_clock(F.col("bucket_start") + F.expr("INTERVAL 1 HOUR"))
                    == wall_clock(F.col("bucket_start"))
                ),
                "flag",
                "The autumn clock change put two real hours under this local time: the count is of "
                "both, and the hour after it (UTC) has no bucket.",
            ),
            Rule(
                "negative_count",
                lambda: F.col("passengers") < 0,
                "quarantine",
                "Nobody rides less than nobody.",
            ),
        ),
    ),
    lateness=None,
    description=(
        "Passengers of all yellow taxis per half hour, July 2014 to January 2015 "
        "(Numenta Anomaly Benchmark, from TLC data)."
    ),
    group=GROUP,
    days=Daily(column="bucket_start", start=date(2014, 7, 1), zone=ZONE),
    suite=PASSENGER_COUNTS_SUITE,
)
