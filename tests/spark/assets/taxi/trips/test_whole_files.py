"""The public trip files as a whole, by the numbers that the cases give.

Runs where RIVERMARK_PUBLIC_DATA names the folder of these files; takes minutes.
"""

from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal

import pytest

from tests.oracles import trips as oracle
from tests.oracles.trip_records import Record
from tests.spark.assets.taxi.trips.published import Published, Row, agree

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

DECEMBER = "green/green_tripdata_2023-12.parquet"
DOUBLES = "green/green_tripdata_2024-01_double_codes.parquet"
INTEGERS = "green/green_tripdata_2024-01_int64_codes.parquet"
FIVE_COLUMNS = "green/green_tripdata_2022-01_five_columns.parquet"
MARCH = "yellow/gx_yellow_2019-03_random9000.csv"


@pytest.fixture(scope="module")
def records(whole: Published) -> list[Record]:
    return oracle.read_trips(whole.landing)


@pytest.fixture(scope="module")
def by_file(whole: Published) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in whole.rows("taxi/trips"):
        found.setdefault(row["file"], []).append(row)
    return found


def test_every_row_of_every_file_is_admitted_or_set_aside(whole: Published) -> None:
    files = [f for f in whole.rows("ops/ingest_files") if f["stream"].startswith("taxi/")]
    landed = [p.name for p in whole.landing.parent.rglob("*") if p.is_file()]

    assert sorted(str(f["path"]).rsplit("/", 1)[-1] for f in files) == sorted(landed)
    assert all(f["rows"] == f["admitted"] + f["late"] + f["quarantined"] for f in files)
    rows = {str(f["path"]).rsplit("/", 1)[-1]: f["rows"] for f in files}
    assert rows["green_tripdata_2023-12.parquet"] == 64_215
    assert rows["seaborn_taxis_2019-03.csv"] == 6_433
    assert rows["nab_nyc_taxi_30min.csv"] == 10_320


def test_b034_both_editions_of_january_are_read_and_one_counts(
    by_file: dict[str, list[Row]],
) -> None:
    for name in (DOUBLES, INTEGERS):
        rows = by_file[name]
        assert len(rows) == 56_551
        assert sum(r["total"] for r in rows) == Decimal("1266922.59")
        assert sum(r["passengers"] or 0 for r in rows) == 69_564
    repeats = Counter(r["is_repeat"] for name in (DOUBLES, INTEGERS) for r in by_file[name])
    assert repeats == {False: 56_551, True: 56_551}


def test_b036_an_empty_column_keeps_its_type(by_file: dict[str, list[Row]]) -> None:
    assert [r["ehail_fee"] for r in by_file[DECEMBER]] == [None] * 64_215


def test_b046_mixed_line_ends(by_file: dict[str, list[Row]]) -> None:
    rows = by_file["yellow/gx_yellow_2019-01_random7500.csv"]

    assert Counter(r["congestion_surcharge"] for r in rows) == {None: 4_736, Decimal("0.00"): 2_764}


def test_b057_one_stray_of_march_is_set_aside(
    whole: Published, by_file: dict[str, list[Row]]
) -> None:
    (stray,) = whole.set_aside(MARCH)

    assert len(by_file[MARCH]) == 8_999
    assert "2019-04-12 22:20:07" in stray["payload"]


def test_b082_january_2022(whole: Published, by_file: dict[str, list[Row]]) -> None:
    months = Counter(r["local_day"].strftime("%Y-%m") for r in by_file[FIVE_COLUMNS])
    beside = [r["local_day"] for r in by_file[FIVE_COLUMNS] if "beside_file_month" in r["flags"]]
    (stray,) = whole.set_aside(FIVE_COLUMNS)

    assert months == {"2022-01": 62_491, "2021-12": 3}
    assert beside == [date(2021, 12, 31)] * 3
    assert stray["reasons"] == ["outside_file_month"]


def test_b083_refunds_of_december(by_file: dict[str, list[Row]]) -> None:
    rows = by_file[DECEMBER]

    assert len(rows) == 64_215
    assert sum(r["fare"] for r in rows) == Decimal("1205963.63")
    assert sum(r["is_surplus"] for r in rows) == 187
    assert sum(r["is_refund"] for r in rows) == 185
    assert not any(r["is_repeat"] for r in rows)


def test_b086_the_box(whole: Published) -> None:
    assert len(whole.rows("taxi/debs_trips")) == 9_813
    assert len(whole.rows("taxi/debs_trips_quarantine")) == 191


def test_b087_averages_and_long_trips_of_december(by_file: dict[str, list[Row]]) -> None:
    rows = by_file[DECEMBER]
    believed = [r["distance_miles"] for r in rows if "absurd_distance" not in r["flags"]]
    driven = [r["distance_miles"] for r in rows]

    assert round(sum(believed) / len(believed), 3) == Decimal("2.874")
    assert round(sum(driven) / len(driven), 3) == Decimal("25.055")
    assert sum("long_trip" in r["flags"] for r in rows) == 425
    assert sum("meter_left_on" in r["flags"] for r in rows) == 151


def test_b088_passengers_of_january_and_february_2019(whole: Published) -> None:
    shares = {}
    for month, name in ((1, "01_random7500"), (2, "02_random8500")):
        file = f"yellow/gx_yellow_2019-{name}.csv"
        rule = whole.rows("taxi/trip_quality", file=file, rule="zero_passengers")
        shares[month] = (sum(r["broken"] for r in rule), sum(r["records"] for r in rule))

    assert shares == {1: (0, 7_500), 2: (1_339, 8_500)}


def test_every_table_agrees(whole: Published, records: list[Record]) -> None:
    assert len(records) == 307_670
    for table, expected, keys in (
        ("taxi/zone_hours", oracle.zone_hours, ("service", "pickup_zone_id", "window_end")),
        ("taxi/tip_hours", oracle.tip_hours, ("service", "window_end")),
        ("taxi/payment_days", oracle.payment_days, ("service", "payment_type", "local_day")),
        ("taxi/local_days", oracle.local_days, ("service", "local_day")),
    ):
        agree(whole.rows(table), expected(records), *keys)


def test_every_record_agrees(by_file: dict[str, list[Row]], records: list[Record]) -> None:
    rows = [{**row, "flags": set(row["flags"])} for rows in by_file.values() for row in rows]
    agree(
        rows,
        {
            (r.file, r.row): {
                "pickup_at": r.pickup,
                "service": r.service,
                "total": r.money[-1],
                "is_repeat": r.repeat,
                "is_surplus": r.surplus,
                "is_refund": r.refund,
                "flags": r.flags,
            }
            for r in records
        },
        "file",
        "row",
    )
