"""Files as they come: types, columns, times and lines that differ (cases B034 to B046)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.spark.assets.taxi.trips.made_files import GREEN, SAMPLES, YELLOW
from tests.spark.assets.taxi.trips.published import Published, Row

pytestmark = pytest.mark.long

DOUBLES = "green/green_tripdata_2024-01_double_codes.parquet"


def values(row: Row) -> Row:
    """What a record says, without where it came from."""
    place = ("file", "row", "is_repeat", "is_surplus")
    return {name: value for name, value in row.items() if name not in place}


def test_b034_codes_stored_as_integers_and_as_doubles_are_the_same_trips(
    published: Published,
) -> None:
    integers, doubles = published.trips(f"green/{GREEN}"), published.trips(DOUBLES)
    source = pq.read_table(SAMPLES / GREEN)

    assert [values(r) for r in integers] == [values(r) for r in doubles]
    assert len(integers) == source.num_rows == 2000
    cents = sum(round(100 * v) for v in source["total_amount"].to_pylist())
    assert sum(r["total"] for r in integers) == Decimal(cents) / 100
    riders = sum(r["passengers"] for r in integers if r["passengers"] is not None)
    assert riders == pc.sum(source["passenger_count"]).as_py()


def test_b034_trips_that_came_twice_count_once(published: Published) -> None:
    # The first of them is in first_trip_2024-01.csv as well.
    first, second = published.trips(DOUBLES)[1:], published.trips(f"green/{GREEN}")[1:]

    assert {r["is_repeat"] for r in first} == {False}
    assert {r["is_repeat"] for r in second} == {True}


def test_b035_fees_are_one_column_each_whatever_their_spelling(published: Published) -> None:
    fees = {
        year: [
            (r["airport_fee"], r["cbd_congestion_fee"])
            for r in published.trips(f"yellow/yellow_tripdata_{year}-{month}.csv")
        ]
        for year, month in ((2018, "06"), (2022, "06"), (2025, "03"))
    }

    assert fees == {
        2018: [(None, None)],
        2022: [(Decimal("1.25"), None)] * 2,
        2025: [(Decimal("1.75"), Decimal("0.75"))] * 3,
    }


def test_b036_a_column_that_was_always_empty_takes_its_first_value(published: Published) -> None:
    fees = Counter(
        r["ehail_fee"]
        for name in (GREEN, "green_tripdata_2024-02.csv")
        for r in published.trips(f"green/{name}")
    )

    assert fees == {None: 2000, Decimal("1.50"): 1}


def test_b038_a_trip_has_the_same_instant_from_parquet_and_from_csv(published: Published) -> None:
    (from_csv,) = published.trips("green/first_trip_2024-01.csv")
    from_parquet = published.trips(f"green/{GREEN}")[0]

    assert from_csv["pickup_at"] == from_parquet["pickup_at"]
    assert from_csv["pickup_at"].tzinfo is not None
    assert from_parquet["is_repeat"]


def test_b039_nanosecond_times_are_read_as_the_times_they_are(published: Published) -> None:
    nine = timedelta(hours=14)
    for day in (1, 2, 3):
        pickups = [
            r["pickup_at"] for r in published.trips(f"green/units_2023-03_part{day}.parquet")
        ]
        start = datetime(2023, 3, day, tzinfo=UTC) + nine
        assert pickups == [start + timedelta(minutes=n) for n in range(10)]


def test_b045_bad_lines_are_set_aside_whole_with_their_reason(published: Published) -> None:
    name = "yellow/bad_lines_2019-05.csv"
    bad = published.set_aside(name)

    assert len(published.trips(name)) == 1
    assert [(r["_row"], r["reasons"]) for r in bad] == [
        (3, ["unreadable_fare"]),
        (4, ["wrong_number_of_values"]),
        (5, ["wrong_number_of_values"]),
        (6, ["wrong_number_of_values"]),
    ]
    assert "abc" in bad[0]["payload"]


def test_b046_mixed_line_ends_leave_no_trace(published: Published) -> None:
    rows = published.trips("yellow/mixed_line_ends_2019-06.csv")

    assert [r["congestion_surcharge"] for r in rows] == [Decimal("0.00")] * 3 + [None] * 3
    assert not any("\r" in v for r in rows for v in r.values() if isinstance(v, str))


def test_b079_empty_values_are_counted_apart_from_good_ones(published: Published) -> None:
    quality = published.rows("taxi/trip_quality", file=f"yellow/{YELLOW}", rule="zero_passengers")
    sums = {n: sum(r[n] for r in quality) for n in ("records", "empty", "broken", "good")}

    assert sums == {"records": 5000, "empty": 1125, "broken": 24, "good": 3851}
