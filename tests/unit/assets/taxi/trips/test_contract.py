"""Column names of TLC's files since 2009, and where each of them goes."""

from __future__ import annotations

import re

import pytest

from assets.taxi.trips.contract import TRIP_RECORD
from assets.taxi.trips.rules import HIRE_CARS, RULES
from rivermark.model.contract import Field

LAYOUTS = {
    "yellow 2025": """
        VendorID tpep_pickup_datetime tpep_dropoff_datetime passenger_count trip_distance
        RatecodeID store_and_fwd_flag PULocationID DOLocationID payment_type fare_amount extra
        mta_tax tip_amount tolls_amount improvement_surcharge total_amount congestion_surcharge
        Airport_fee cbd_congestion_fee
    """,
    "green 2023": """
        VendorID lpep_pickup_datetime lpep_dropoff_datetime store_and_fwd_flag RatecodeID
        PULocationID DOLocationID passenger_count trip_distance fare_amount extra mta_tax
        tip_amount tolls_amount ehail_fee improvement_surcharge total_amount payment_type
        trip_type congestion_surcharge
    """,
    "renamed": """
        vendor_id pickup_datetime dropoff_datetime passenger_count trip_distance rate_code_id
        store_and_fwd_flag pickup_location_id dropoff_location_id payment_type fare_amount extra
        mta_tax tip_amount tolls_amount improvement_surcharge total_amount congestion_surcharge
    """,
    "yellow 2009": """
        vendor_name Trip_Pickup_DateTime Trip_Dropoff_DateTime Passenger_Count Trip_Distance
        Rate_Code store_and_forward Payment_Type Fare_Amt surcharge mta_tax Tip_Amt Tolls_Amt
        Total_Amt
    """,
    "yellow 2010 to 2014": """
        vendor_id pickup_datetime dropoff_datetime passenger_count trip_distance rate_code
        store_and_fwd_flag payment_type fare_amount surcharge mta_tax tip_amount tolls_amount
        total_amount
    """,
    "yellow and green together": "color ehail_fee trip_type airport_fee",
}
TEXTS = ("pickup_local", "dropoff_local")


def takers(column: str) -> list[Field]:
    """The fields that read a column, in any letter case."""
    return [
        field
        for field in TRIP_RECORD.fields
        if column.lower() in {name.lower() for name in (field.name, *field.names)}
    ]


def test_each_column_of_each_layout_goes_to_one_field() -> None:
    for layout, columns in LAYOUTS.items():
        for column in columns.split():
            found = [f.name for f in takers(column) if f.name not in TEXTS]
            assert len(found) == 1, (layout, column, found)


def test_the_times_are_kept_as_they_were_written_as_well() -> None:
    for column in ("tpep_pickup_datetime", "lpep_pickup_datetime", "pickup_datetime"):
        assert {f.name for f in takers(column)} == {"pickup_at", "pickup_local"}


def test_a_column_that_is_not_tlcs_goes_nowhere() -> None:
    assert takers("test_bool") == []


def test_only_what_places_a_trip_in_time_is_required() -> None:
    assert [f.name for f in TRIP_RECORD.fields if f.required] == ["pickup_at", "dropoff_at"]


def test_only_rules_about_time_and_what_is_no_taxi_set_a_record_aside() -> None:
    aside = [rule.name for rule in RULES if rule.action == "quarantine"]

    assert aside == ["outside_file_month", "stray_year", "hire_car_record"]


def test_every_field_and_rule_says_what_it_is() -> None:
    described = [(x.name, x.description) for x in TRIP_RECORD.fields]
    described += [(x.name, x.description) for x in RULES]

    assert [name for name, text in described if not text.endswith(".")] == []


@pytest.mark.parametrize(
    ("column", "is_one"),
    [
        ("dispatching_base_num", True),
        ("Dispatching_base_number", True),
        ("dispatching base num", True),
        ("DispatchingBaseNum", True),
        ("Affiliated_base_number", True),
        ("originating_base_num", True),
        ("hvfhs_license_num", True),
        ("base_fare", False),
        ("PULocationID", False),
    ],
)
def test_hire_cars_are_known_by_other_spellings_of_their_columns(column: str, is_one: bool) -> None:
    assert (re.search(HIRE_CARS, f'{{"{column}":"B00013"}}') is not None) is is_one
