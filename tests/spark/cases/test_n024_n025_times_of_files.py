"""Cases N024 and N025 as files through a whole run: seconds for milliseconds, zones in texts."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from assets.readings.ingest import LIBRARY
from assets.taxi.trips.ingest import TRIP_RECORDS
from rivermark import Table
from rivermark.settings import Settings
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import rows, run

pytestmark = [pytest.mark.spark, pytest.mark.long]

SECONDS = "1163000460 1 8 20,5 2,8 40,1 21,05 1 3"
MILLIS = "1163000460000 1 8 20,5 2,8 40,1 21,05 1 3"
TRIPS = (
    "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,RatecodeID,"
    "store_and_fwd_flag,PULocationID,DOLocationID,payment_type,fare_amount,total_amount",
    "1,2025-06-01 10:00:00-04:00,2025-06-01 10:20:00-4:00,1,3.1,1,N,161,237,1,20,24.75",
    "1,2025-06-01 10:00:00 UTC,2025-06-01 06:20:00 America/New_York,1,3.1,1,N,161,237,1,20,24.75",
    "1,2025-06-01 10:00:00 EST,2025-06-01 20:50:00+5:30,1,3.1,1,N,161,237,1,20,24.75",
    "1,2025-06-01 10:00:00 CST,2025-06-01 10:20:00,1,3.1,1,N,161,237,1,20,24.75",
)


def test_n024_n025_files_with_times_in_another_spelling(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    landing.put(f"{LIBRARY.source.name}/messages.txt", SECONDS, MILLIS)
    landing.put("taxi/trips/yellow_tripdata_2025-06.csv", *TRIPS)
    run(spark, settings, LIBRARY, TRIP_RECORDS)

    assert times(spark, settings, LIBRARY.admitted, "event_time") == [(2, "2006-11-08 15:41:00")]
    [early] = rows(spark, settings, LIBRARY.quarantine, "_row", "reasons")
    assert (early["_row"], early["reasons"]) == (1, ["unreadable_event_time"])

    assert times(spark, settings, TRIP_RECORDS.admitted, "pickup_at", "dropoff_at") == [
        (2, "2025-06-01 14:00:00", "2025-06-01 14:20:00"),
        (3, "2025-06-01 10:00:00", "2025-06-01 10:20:00"),
        (4, "2025-06-01 15:00:00", "2025-06-01 15:20:00"),
    ]
    [unknown] = rows(spark, settings, TRIP_RECORDS.quarantine, "_row", "reasons")
    assert (unknown["_row"], unknown["reasons"]) == (5, ["unreadable_pickup_at"])


def times(
    spark: SparkSession, settings: Settings, table: Table, *columns: str
) -> list[tuple[object, ...]]:
    """The place of each row, and these moments of it in UTC."""
    found = rows(spark, settings, table, "_row", *columns)
    return [(row["_row"], *(f"{row[c]:%Y-%m-%d %H:%M:%S}" for c in columns)) for row in found]
