"""What real trips are like: clocks, strays, refunds, zones, distances (cases B048 to B088)."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from assets.taxi.trips.trips import TRIPS
from assets.taxi.trips.zone_hours import ZONE_HOURS
from tests.spark.assets.taxi.trips.made_files import FEBRUARY, JANUARY, YELLOW
from tests.spark.assets.taxi.trips.published import Published
from tests.spark.helpers.recomputing import recompute_days

pytestmark = pytest.mark.long

MARCH = (date(2019, 3, 1), date(2019, 3, 31))


def test_b048_the_repeated_hour_is_two_windows_with_names_of_their_own(
    published: Published,
) -> None:
    windows = {
        row["window_start"]: (row["local_hour"], row["trips"])
        for row in published.rows("taxi/zone_hours", pickup_zone_id=10)
        if row["local_day"] == date(2014, 11, 2)
    }

    assert windows == {
        datetime(2014, 11, 2, 5, tzinfo=UTC): ("2014-11-02 01:00-04:00", 1),
        datetime(2014, 11, 2, 6, tzinfo=UTC): ("2014-11-02 01:00-05:00", 1),
    }


def test_b048_days_of_clock_changes_last_25_and_23_hours(published: Published) -> None:
    days = {r["local_day"]: r for r in published.rows("taxi/local_days", service="yellow")}
    autumn, spring = days[date(2014, 11, 2)], days[date(2014, 3, 9)]

    assert (autumn["hours_in_day"], autumn["trips"], autumn["ambiguous"]) == (25, 5, 1)
    assert (spring["hours_in_day"], spring["trips"], spring["ambiguous"]) == (23, 2, 0)


def test_b048_a_time_without_offset_is_its_first_pass_and_flagged(published: Published) -> None:
    flagged = {
        r["pickup_local"]: (r["pickup_at"].isoformat(), r["flags"])
        for name in ("11", "03")
        for r in published.trips(f"yellow/clocks_2014-{name}.csv")
        if r["flags"]
    }

    assert flagged == {
        "2014-11-02 01:40:00": ("2014-11-02T05:40:00+00:00", ["ambiguous_local_time"]),
        "2014-03-09 02:30:00": ("2014-03-09T07:30:00+00:00", ["skipped_local_time"]),
    }


def test_a_trip_across_the_spring_change_is_an_hour_shorter_than_its_clocks_say(
    published: Published,
) -> None:
    across = published.trips("yellow/clocks_2014-03.csv")[1]

    assert (across["pickup_local"], across["dropoff_local"]) == (
        "2014-03-09 01:50:00",
        "2014-03-09 03:10:00",
    )
    assert across["seconds"] == 20 * 60


def test_b057_a_backfill_of_march_leaves_april_alone(published: Published) -> None:
    march, april = (f"yellow/yellow_tripdata_2019-0{m}.csv" for m in (3, 4))
    before = published.trips(april)
    (stray,) = published.set_aside(march)

    for stream in (TRIPS, ZONE_HOURS):
        recompute_days(published.spark, published.settings, stream, *MARCH, run_id="march")

    assert len(published.trips(march)) == 4
    assert published.trips(april) == before
    assert len(before) == 5
    assert stray["reasons"] == ["outside_file_month"]
    assert "2019-04-12 22:20:07" in stray["payload"]


def test_b082_strays_are_named_and_none_vanishes(published: Published) -> None:
    name = "green/green_tripdata_2022-01_five_columns.parquet"
    kept = {r["pickup_local"][:10]: r["flags"] for r in published.trips(name)}
    aside = {r["payload"][25:29]: r["reasons"] for r in published.set_aside(name)}

    assert kept == {"2022-01-04": [], "2022-01-31": [], "2021-12-31": ["beside_file_month"]}
    assert aside == {
        "2009": ["outside_file_month"],
        "2090": ["event_time_ahead", "outside_file_month"],
    }


def test_b082_a_year_before_all_records_is_a_stray_without_any_month(published: Published) -> None:
    (stray,) = published.set_aside("yellow/no_month.csv")

    assert stray["reasons"] == ["stray_year"]


def test_b083_refunds_count_no_trip_and_take_back_their_fare(published: Published) -> None:
    (day,) = (
        r
        for r in published.rows("taxi/local_days", service="green")
        if r["local_day"] == date(2023, 12, 10)
    )

    assert (day["records"], day["trips"], day["surplus"], day["refunds"]) == (8, 6, 2, 1)
    assert day["fare"] == 4 * Decimal("11.5") + Decimal("11.5") + Decimal("12.5")


def test_b083_the_refund_is_surplus_and_the_trip_stays(published: Published) -> None:
    trip, refund, corrected, correction, *_ = published.trips("green/refunds_2023-12.csv")

    assert (trip["is_refunded"], trip["is_surplus"]) == (True, False)
    assert (refund["is_refund"], refund["is_surplus"]) == (True, True)
    assert refund["flags"] == ["negative_amount", "refund"]
    assert (corrected["is_surplus"], correction["is_surplus"]) == (True, False)
    assert not corrected["is_repeat"]


def test_b084_a_flex_fare_is_a_trip_and_no_refund(published: Published) -> None:
    cheaper, dearer, refund, refunded = published.trips("green/flex_2023-11.csv")

    marks = [(r["is_refund"], r["is_refunded"]) for r in (cheaper, dearer, refund, refunded)]
    assert marks == [(False, False), (False, False), (True, False), (False, True)]
    assert [r["flags"] for r in (cheaper, dearer, refund, refunded)] == [
        ["negative_amount", "flex_fare"],
        [],
        ["negative_amount", "refund"],
        [],
    ]


def test_b084_refunds_and_flex_fares_of_a_real_file_are_counted_apart(published: Published) -> None:
    def broken(rule: str) -> int:
        rows = published.rows("taxi/trip_quality", file=f"yellow/{YELLOW}", rule=rule)
        return sum(row["broken"] for row in rows)

    counts = {rule: broken(rule) for rule in ("negative_amount", "refund", "flex_fare")}
    assert counts == {"negative_amount": 273, "refund": 92, "flex_fare": 181}
    assert len(published.trips(f"yellow/{YELLOW}")) == 5000


def test_b085_each_trip_keeps_its_one_row_whatever_its_zone(published: Published) -> None:
    rows = published.trips("green/zones_2023-05.csv")

    assert [(r["pickup_zone_id"], r["pickup_borough"], r["pickup_zone"]) for r in rows] == [
        (264, "Unknown", "NV"),
        (265, "Unknown", "NA"),
        (56, "Queens", "Corona"),
        (999, None, None),
    ]
    unknown = ["unknown_pickup_zone"]
    assert [r["flags"] for r in rows] == [unknown, unknown, [], unknown]


def test_b087_the_average_says_which_distances_it_holds(published: Published) -> None:
    (day,) = (
        r
        for r in published.rows("taxi/local_days", service="green")
        if r["local_day"] == date(2023, 12, 10)
    )

    # Six trips of 2.5 miles and one of none; then the absurd one beside them.
    assert (day["average_miles"], day["measured"]) == (Decimal("2.142857"), 7)
    assert (day["average_miles_all"], day["measured_all"]) == (Decimal("14875.463750"), 8)


def test_b087_long_trips_and_meters_left_on_can_be_told_apart(published: Published) -> None:
    flags = [r["flags"] for r in published.trips("green/refunds_2023-12.csv")[5:]]

    assert flags == [
        ["long_trip"],
        ["long_trip", "meter_left_on"],
        ["zero_length", "zero_distance"],
    ]


def test_b088_zero_passengers_are_counted_and_nothing_is_dropped(published: Published) -> None:
    broken = {}
    for file in (JANUARY, FEBRUARY):
        rule = published.rows("taxi/trip_quality", file=file, rule="zero_passengers")
        broken[file] = sum(r["broken"] for r in rule)
        assert len(published.trips(file)) == sum(r["records"] for r in rule) == 100

    assert broken == {JANUARY: 0, FEBRUARY: 16}


def test_the_service_is_told_by_colour_then_by_path_then_not_at_all(published: Published) -> None:
    colors = published.trips("yellow/colors_2019-07.csv")
    (nowhere,) = published.trips("somewhere/trips_2019-08.csv")

    assert [r["service"] for r in colors] == ["yellow", "green"]
    assert (nowhere["service"], nowhere["flags"]) == (None, ["unknown_service"])
