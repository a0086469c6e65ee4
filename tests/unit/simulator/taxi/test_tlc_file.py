import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

from assets.samples import SAMPLES as DEMO_SAMPLES
from simulator.taxi.tlc_file import UnknownTripLayout, read_trips

SAMPLES = Path(__file__).parents[3] / "data" / "tlc"
GREEN = SAMPLES / "green_tripdata_2024-01_first2000.parquet"
YELLOW = SAMPLES / "yellow_tripdata_2025-02_sample5000.parquet"
TEN_A_MONTH = SAMPLES / "gx_yellow_10_per_month.csv"
DEBS = DEMO_SAMPLES / "tlc" / "debs2015_trips_2013-01-01_first1000.csv"

LINE = "2019-01-03 08:49:57,2019-01-03 09:09:10,1,236,87,22.0,2.0,24.8"


def first_trip(path: Path) -> dict[str, object]:
    row: dict[str, object] = read_trips(path).trips.slice(0, 1).to_pylist()[0]
    return {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize(
    ("path", "rows"), [(GREEN, 2000), (YELLOW, 5000), (TEN_A_MONTH, 360), (DEBS, 1000)]
)
def test_every_layout_gives_all_its_rows(path: Path, rows: int) -> None:
    file = read_trips(path)

    assert (file.name, file.trips.num_rows, file.malformed) == (path.name, rows, 0)
    assert file.trips.column("pickup").null_count == 0


def test_green_and_yellow_parquet_files_give_zones_and_money() -> None:
    for path in (GREEN, YELLOW):
        assert set(first_trip(path)) == {
            "pickup",
            "dropoff",
            "pickup_zone",
            "dropoff_zone",
            "passenger_count",
            "fare",
            "tip",
            "total",
            "vendor",
        }


def test_a_csv_file_is_read_as_text() -> None:
    assert first_trip(TEN_A_MONTH) == {
        "pickup": "2018-01-11 18:24:44",
        "dropoff": "2018-01-11 18:35:02",
        "pickup_zone": "230",
        "dropoff_zone": "237",
        "passenger_count": "1.0",
        "fare": "8.5",
        "tip": "2.06",
        "total": "12.36",
        "vendor": "2.0",
    }


def test_the_file_without_header_has_times_and_money_but_no_zones() -> None:
    assert first_trip(DEBS) == {
        "pickup": "2013-01-01 00:00:00",
        "dropoff": "2013-01-01 00:02:00",
        "fare": "3.50",
        "tip": "0.00",
        "total": "4.50",
    }


@pytest.mark.parametrize(
    "header",
    [
        "tpep_pickup_datetime,tpep_dropoff_datetime,VendorID,PULocationID,DOLocationID,"
        "fare_amount,tip_amount,total_amount",
        "pickup_datetime,dropoff_datetime,vendor_id,pickup_location_id,dropoff_location_id,"
        "fare_amount,tip_amount,total_amount",
        "Lpep_Pickup_Datetime,Lpep_dropoff_datetime,vendorid,PULOCATIONID,dolocationid,"
        "fare_amount,tip_amount,total_amount",
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_the_spellings_of_all_years_mean_the_same(
    tmp_path: Path, header: str, line_end: str
) -> None:
    path = tmp_path / "trips.csv"
    path.write_bytes(f"{header}\n{LINE}{line_end}{LINE}\n".encode())

    trips = read_trips(path).trips

    assert trips.column("vendor").to_pylist() == ["1", "1"]
    assert trips.column("dropoff_zone").to_pylist() == ["87", "87"]
    assert trips.column("total").to_pylist() == ["24.8", "24.8"]


def test_names_of_a_cleaned_extract_are_not_taken_for_zone_numbers(tmp_path: Path) -> None:
    path = tmp_path / "taxis.csv"
    path.write_text(
        "pickup,dropoff,passengers,fare,tip,total,pickup_zone,dropoff_zone\n"
        "2019-03-23 20:21:09,2019-03-23 20:27:24,1,7.0,2.15,12.95,Lenox Hill West,Corona\n"
    )

    trip = first_trip(path)

    assert (trip["passenger_count"], trip["fare"]) == ("1", "7.0")
    assert "pickup_zone" not in trip


def test_an_extract_of_five_columns_lacks_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "green.parquet"
    names = [
        "lpep_pickup_datetime",
        "lpep_dropoff_datetime",
        "trip_distance",
        "PULocationID",
        "DOLocationID",
    ]
    pyarrow.parquet.write_table(pyarrow.parquet.read_table(GREEN, columns=names), path)

    trips = read_trips(path).trips

    assert trips.column("pickup_zone").null_count == 0
    assert trips.column("fare").null_count == trips.num_rows == 2000


def test_a_gzipped_csv_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "trips.csv.gz"
    path.write_bytes(gzip.compress(TEN_A_MONTH.read_bytes()))

    assert read_trips(path).trips.equals(read_trips(TEN_A_MONTH).trips)


def test_lines_of_another_width_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "trips.csv"
    path.write_text("pickup,dropoff,fare\na,b,1\na,b\na,b,1,2\na,b,3\n")

    file = read_trips(path)

    assert file.trips.column("fare").to_pylist() == ["1", "3"]
    assert file.malformed == 2


def test_files_without_trips_are_refused_with_their_columns(tmp_path: Path) -> None:
    with pytest.raises(UnknownTripLayout, match="LocationID"):
        read_trips(SAMPLES / "taxi_zone_lookup.csv")
    empty = tmp_path / "empty.csv"
    empty.write_bytes(b"")
    with pytest.raises(UnknownTripLayout, match="empty"):
        read_trips(empty)
    other = tmp_path / "other.parquet"
    pyarrow.parquet.write_table(pa.table({"id": [1]}), other)
    with pytest.raises(UnknownTripLayout, match="id"):
        read_trips(other)
