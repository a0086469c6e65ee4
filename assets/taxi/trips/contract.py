"""What a TLC trip record is, under every spelling of its columns since 2009.

Amounts are US dollars, distances miles with two decimals, zones and codes whole numbers whatever
the file stored them as. A column that a file lacks, or leaves empty, is empty here: never 0.
"""

from __future__ import annotations

from typing import Final

from assets.taxi.trips.new_york import ZONE
from assets.taxi.trips.payment import PAYMENT_CODE
from assets.taxi.trips.rules import RULES
from assets.taxi.trips.vendor import VENDOR_CODE
from rivermark import Contract, Field, readers

MONEY: Final = "decimal(12,2)"
MILES: Final = "decimal(12,2)"

PICKUP: Final = (
    "tpep_pickup_datetime",
    "lpep_pickup_datetime",
    "pickup_datetime",
    "trip_pickup_datetime",
)
DROPOFF: Final = (
    "tpep_dropoff_datetime",
    "lpep_dropoff_datetime",
    "dropoff_datetime",
    "trip_dropoff_datetime",
)

WHEN_AND_WHERE: Final = (
    Field(
        "pickup_at",
        "timestamp",
        PICKUP,
        required=True,
        read=readers.local_timestamp(ZONE),
        description="When the meter was engaged (UTC, from New York wall-clock time).",
    ),
    Field(
        "dropoff_at",
        "timestamp",
        DROPOFF,
        required=True,
        read=readers.local_timestamp(ZONE),
        description="When the meter was disengaged (UTC, from New York wall-clock time).",
    ),
    Field("pickup_local", "string", PICKUP, description="The pickup time as the file wrote it."),
    Field("dropoff_local", "string", DROPOFF, description="The dropoff time as the file wrote it."),
    Field(
        "pickup_zone_id",
        "int",
        ("PULocationID", "pickup_location_id"),
        description="Taxi zone of the pickup, 1 to 265.",
    ),
    Field(
        "dropoff_zone_id",
        "int",
        ("DOLocationID", "dropoff_location_id"),
        description="Taxi zone of the dropoff, 1 to 265.",
    ),
    Field("distance_miles", MILES, ("trip_distance",), description="Miles, as the taximeter says."),
)

CODES: Final = (
    Field(
        "vendor",
        "int",
        ("VendorID", "vendor_id", "vendor_name"),
        read=VENDOR_CODE,
        description="Who sent the record: 1 CMT, 2 VTS, 3 DDS, and TLC's later numbers.",
    ),
    Field("passengers", "int", ("passenger_count",), description="As the driver entered."),
    Field(
        "rate_code",
        "int",
        ("RatecodeID", "rate_code_id", "rate_code"),
        description="1 standard, 2 JFK, 3 Newark, 4 Nassau or Westchester, 5 negotiated, 6 group.",
    ),
    Field(
        "payment_type",
        "int",
        (),
        read=PAYMENT_CODE,
        description="0 flex fare, 1 card, 2 cash, 3 no charge, 4 dispute, 5 unknown, 6 voided.",
    ),
    Field("trip_type", "int", (), description="Green only: 1 hailed, 2 dispatched."),
    Field(
        "store_and_forward",
        "string",
        ("store_and_fwd_flag",),
        description="Y when the vehicle kept the record for lack of a connection.",
    ),
    Field(
        "color",
        "string",
        ("cab_type",),
        description="yellow or green, in files that mix them; others say it in their name.",
    ),
)

AMOUNTS: Final = (
    Field("fare", MONEY, ("fare_amount", "fare_amt"), description="Time and distance (USD)."),
    Field("extra", MONEY, ("surcharge",), description="Rush hour and overnight extras (USD)."),
    Field("mta_tax", MONEY, (), description="MTA tax (USD)."),
    Field(
        "tip", MONEY, ("tip_amount", "tip_amt"), description="Tip (USD), recorded for cards only."
    ),
    Field("tolls", MONEY, ("tolls_amount", "tolls_amt"), description="Tolls (USD)."),
    Field("ehail_fee", MONEY, (), description="E-hail fee (USD), green only, so far always empty."),
    Field("improvement_surcharge", MONEY, (), description="Improvement surcharge (USD)."),
    Field("congestion_surcharge", MONEY, (), description="Congestion surcharge (USD), from 2019."),
    Field("airport_fee", MONEY, (), description="Airport fee (USD), yellow only."),
    Field("cbd_congestion_fee", MONEY, (), description="Congestion zone fee (USD), from 2025."),
    Field(
        "total",
        MONEY,
        ("total_amount", "total_amt"),
        description="Charged in all, without cash tips (USD).",
    ),
)

TRIP_RECORD: Final = Contract(
    fields=(*WHEN_AND_WHERE, *CODES, *AMOUNTS),
    event_time="pickup_at",
    rules=RULES,
)
"""A record has no id of its own: its file and line name it."""
