"""Layouts of 2009 to 2014 are understood wholly, and those of hire cars refused (N035 to N037)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import SparkSession

from assets.taxi.trips.contract import TRIP_RECORD
from rivermark.ingest.parse.contract_parser import ContractParser
from rivermark.ingest.parse.problems import PROBLEMS
from tests.spark.helpers.contract_problems import parsed_on_executors

LANDED = datetime(2026, 1, 1, tzinfo=UTC)

YELLOW_2009 = (
    "vendor_name,Trip_Pickup_DateTime,Trip_Dropoff_DateTime,Passenger_Count,Trip_Distance,"
    "Start_Lon,Start_Lat,Rate_Code,store_and_forward,End_Lon,End_Lat,Payment_Type,Fare_Amt,"
    "surcharge,mta_tax,Tip_Amt,Tolls_Amt,Total_Amt"
)
YELLOW_2010 = (
    "vendor_id,pickup_datetime,dropoff_datetime,passenger_count,trip_distance,pickup_longitude,"
    "pickup_latitude,rate_code,store_and_fwd_flag,dropoff_longitude,dropoff_latitude,payment_type,"
    "fare_amount,surcharge,mta_tax,tip_amount,tolls_amount,total_amount"
)
GREEN_2013 = (
    "VendorID,lpep_pickup_datetime,Lpep_dropoff_datetime,Passenger_count,Trip_distance,Fare_amount,"
    "Total_amount,Payment_type,Trip_type"
)
HIRE_2019 = (
    "dispatching_base_num,pickup_datetime,dropOff_datetime,PUlocationID,DOlocationID,SR_Flag,"
    "Affiliated_base_number"
)
HIGH_VOLUME = (
    "hvfhs_license_num,dispatching_base_num,pickup_datetime,dropoff_datetime,PULocationID,"
    "DOLocationID,trip_miles,base_passenger_fare,tolls,tips"
)


LINES = {
    **{
        letters: (
            YELLOW_2009,
            f"{letters},2009-03-04 02:52:00,2009-03-04 03:02:00,1,2.63,-73.99,40.72,,,-73.98,"
            "40.74,CASH,8.9,0.5,,1.5,0,10.9",
            "2009-03",
        )
        for letters in ("VTS", "CMT", "DDS")
    },
    "2010": (
        YELLOW_2010,
        "CMT,2010-05-02 15:26:31,2010-05-02 15:35:37,1,1.4,-73.99,40.72,1,0,-73.98,40.74,Cas,"
        "6.9,0,0.5,0,0,7.4",
        "2010-05",
    ),
    "2013": (GREEN_2013, "2,2013-12-01 00:00:00,2013-12-01 00:05:00,1,1.1,21,21,2,,", "2013-12"),
    "hire car": (
        HIRE_2019,
        "B00009,2019-03-01 00:00:00,2019-03-01 00:10:00,1,2,,B00009",
        "2019-03",
    ),
    "high volume": (
        HIGH_VOLUME,
        "HV0003,B02764,2019-03-01 00:00:00,2019-03-01 00:10:00,1,2,3.1,20.5,1,2",
        "2019-03",
    ),
}
"""A header, a line of a CSV file under it, and the month of the file's name."""


@pytest.fixture(scope="module")
def parsed(spark: SparkSession) -> dict[str, dict[str, Any]]:
    """The lines as the contract reads them, all by one query: its plan costs seconds."""
    raw = spark.createDataFrame(
        [
            (
                line,
                "csv",
                json.dumps(header.split(",")),
                None,
                LANDED,
                f"yellow_tripdata_{month}.csv",
            )
            for header, line, month in LINES.values()
        ],
        "payload string, _format string, _columns string, _head string, _landed_at timestamp, "
        "_file string",
    )
    rows = parsed_on_executors(ContractParser(TRIP_RECORD, ","), raw).collect()
    return {name: row.asDict() for name, row in zip(LINES, rows, strict=True)}


@pytest.mark.parametrize(("letters", "number"), [("VTS", 2), ("CMT", 1), ("DDS", 3)])
def test_n035_the_layout_of_2009(
    parsed: dict[str, dict[str, Any]], letters: str, number: int
) -> None:
    row = parsed[letters]

    assert row[PROBLEMS] == []
    assert (row["vendor"], row["payment_type"], row["mta_tax"]) == (number, 2, None)
    amounts = [row[name] for name in ("fare", "extra", "tip", "tolls", "total")]
    assert amounts == [Decimal(text) for text in ("8.90", "0.50", "1.50", "0.00", "10.90")]


def test_n036_the_layout_of_2010_to_2014(parsed: dict[str, dict[str, Any]]) -> None:
    row = parsed["2010"]

    assert row[PROBLEMS] == []
    assert (row["vendor"], row["payment_type"], row["rate_code"]) == (1, 2, 1)
    assert (row["fare"], row["extra"], row["total"]) == (Decimal("6.90"), 0, Decimal("7.40"))


def test_n037_empty_values_behind_the_last_column_are_no_data(
    parsed: dict[str, dict[str, Any]],
) -> None:
    row = parsed["2013"]

    assert row[PROBLEMS] == []
    assert (row["fare"], row["payment_type"], row["trip_type"]) == (Decimal("21.00"), 2, None)


@pytest.mark.parametrize("name", ["hire car", "high volume"])
def test_a_record_of_a_hire_car_is_no_trip_of_a_taxi(
    parsed: dict[str, dict[str, Any]], name: str
) -> None:
    assert parsed[name][PROBLEMS] == ["hire_car_record"]
