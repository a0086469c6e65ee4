"""Small trip files, each made for one case, in months of their own so that they do not mix."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

SAMPLES = Path(__file__).parents[4] / "data" / "tlc"
GREEN = "green_tripdata_2024-01_first2000.parquet"
YELLOW = "yellow_tripdata_2025-02_sample5000.parquet"
TEN_PER_MONTH = "gx_yellow_10_per_month.csv"

Cells = dict[str, Any]


def trip(pickup: str, minutes: float = 12, **cells: Any) -> Cells:
    """An ordinary card trip in the official yellow layout, changed by `cells`."""
    dropoff = datetime.fromisoformat(pickup) + timedelta(minutes=minutes)
    ordinary: Cells = {
        "VendorID": 2,
        "tpep_pickup_datetime": pickup,
        "tpep_dropoff_datetime": dropoff.isoformat(sep=" "),
        "passenger_count": 1,
        "trip_distance": "2.50",
        "RatecodeID": 1,
        "store_and_fwd_flag": "N",
        "PULocationID": 236,
        "DOLocationID": 87,
        "payment_type": 1,
        "fare_amount": "11.5",
        "tip_amount": "2.00",
        "total_amount": "16.30",
        "congestion_surcharge": "2.5",
    }
    return {**ordinary, **cells}


def trips(first_pickup: str, count: int, **cells: Any) -> list[Cells]:
    """So many trips, a quarter of an hour apart."""
    start = datetime.fromisoformat(first_pickup)
    return [
        trip((start + timedelta(minutes=15 * n)).isoformat(sep=" "), **cells) for n in range(count)
    ]


def csv_text(rows: Sequence[Cells]) -> str:
    """Rows under a header of the first one's columns, lines ended by LF."""
    text = StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def put(folder: Path, name: str, content: str | bytes | pa.Table) -> None:
    """One file below the landing folder."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, pa.Table):
        pq.write_table(content, path)
    else:
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def put_samples(folder: Path) -> None:
    """The committed yellow samples, as TLC published them."""
    put(folder, f"yellow/{YELLOW}", (SAMPLES / YELLOW).read_bytes())
    put(folder, f"yellow/{TEN_PER_MONTH}", (SAMPLES / TEN_PER_MONTH).read_bytes())


def put_retyped_sample(folder: Path) -> None:
    """The green sample again, its codes as doubles: the other edition of the same month (B034)."""
    table = pq.read_table(SAMPLES / GREEN)
    for position, column in enumerate(table.schema):
        if column.name in ("RatecodeID", "passenger_count", "payment_type", "trip_type"):
            doubles = table.column(position).cast(pa.float64())
            table = table.set_column(position, column.name, doubles)
    put(folder, "green/green_tripdata_2024-01_double_codes.parquet", table)


def put_fee_columns(folder: Path) -> None:
    """Three layouts of the fees (B035), and the first e-hail fee ever seen (B036)."""
    lower = trips("2022-06-01 08:00:00", 2, airport_fee="1.25")
    upper = trips("2025-03-01 08:00:00", 3, Airport_fee="1.75", cbd_congestion_fee="0.75")
    put(folder, "yellow/yellow_tripdata_2022-06.csv", csv_text(lower))
    put(folder, "yellow/yellow_tripdata_2025-03.csv", csv_text(upper))
    put(folder, "yellow/yellow_tripdata_2018-06.csv", csv_text(trips("2018-06-01 08:00:00", 1)))
    put(
        folder,
        "green/green_tripdata_2024-02.csv",
        csv_text(trips("2024-02-01", 1, ehail_fee="1.5")),
    )


def put_first_as_csv(folder: Path) -> None:
    """The green sample's first trip in the other format (B038)."""
    first = pq.read_table(SAMPLES / GREEN).slice(0, 1).to_pylist()[0]
    put(folder, "green/first_trip_2024-01.csv", csv_text([first]))


def put_time_units(folder: Path) -> None:
    """Ten trips each with times in microseconds, nanoseconds and microseconds (B039)."""
    for day, unit in ((1, "us"), (2, "ns"), (3, "us")):
        start = datetime.fromisoformat(f"2023-03-0{day} 09:00:00")
        pickups = [start + timedelta(minutes=n) for n in range(10)]
        dropoffs = [p + timedelta(minutes=7) for p in pickups]
        columns = {
            "lpep_pickup_datetime": pa.array(pickups, pa.timestamp(unit)),
            "lpep_dropoff_datetime": pa.array(dropoffs, pa.timestamp(unit)),
            "PULocationID": pa.array([74] * 10, pa.int32()),
        }
        put(folder, f"green/units_2023-03_part{day}.parquet", pa.table(columns))


def put_bad_lines(folder: Path) -> None:
    """A good line and four bad ones (B045)."""
    head, good = csv_text(trips("2019-05-01 10:00:00", 1)).splitlines()
    abc = good.replace(",11.5,", ",abc,")
    few, many = ",".join(good.split(",")[:5]), good + ",1,2,3"
    lines = [head, good, abc, few, many, '{"VendorID": 1}']
    put(folder, "yellow/bad_lines_2019-05.csv", "".join(line + "\n" for line in lines))


def put_mixed_line_ends(folder: Path) -> None:
    """Header and one line ended by LF, the others by CRLF, the last column empty in some (B046)."""
    rows = trips("2019-06-01 10:00:00", 6, congestion_surcharge="0")
    for row in rows[3:]:
        row["congestion_surcharge"] = ""
    head, first, *others = csv_text(rows).splitlines()
    text = f"{head}\n{first}\n" + "".join(line + "\r\n" for line in others)
    put(folder, "yellow/mixed_line_ends_2019-06.csv", text)


def put_clock_changes(folder: Path) -> None:
    """The repeated hour of 2014-11-02, told apart by offsets and not; the skipped one (B048)."""
    autumn = [
        trip("2014-11-02T01:30:00-04:00", PULocationID=10),
        trip("2014-11-02T01:30:00-05:00", PULocationID=10),
        trip("2014-11-02 01:40:00", PULocationID=11),
        trip("2014-11-02 00:10:00", PULocationID=11),
        trip("2014-11-02 23:50:00", PULocationID=11),
    ]
    spring = [trip("2014-03-09 02:30:00"), trip("2014-03-09 01:50:00", minutes=80)]
    put(folder, "yellow/clocks_2014-11.csv", csv_text(autumn))
    put(folder, "yellow/clocks_2014-03.csv", csv_text(spring))


def put_strays(folder: Path) -> None:
    """Trips dated in other months and years (B057, B082)."""
    march = [*trips("2019-03-05 08:00:00", 4), trip("2019-04-12 22:20:07")]
    put(folder, "yellow/yellow_tripdata_2019-03.csv", csv_text(march))
    april = trips("2019-04-12 08:00:00", 5, VendorID=1)
    put(folder, "yellow/yellow_tripdata_2019-04.csv", csv_text(april))
    written = (
        "2022-01-04 12:00:00",
        "2022-01-31 23:57:37",
        "2009-01-01 00:34:01",
        "2021-12-31 23:44:03",
        "2090-12-31 00:00:00",
    )
    pickups = [datetime.fromisoformat(wall) for wall in written]
    five = {
        "lpep_pickup_datetime": pa.array(pickups, pa.timestamp("us")),
        "lpep_dropoff_datetime": pa.array([p + timedelta(hours=1) for p in pickups]),
        "trip_distance": pa.array([3.1] * 5),
        "PULocationID": pa.array([75] * 5),
        "DOLocationID": pa.array([41] * 5),
    }
    put(folder, "green/green_tripdata_2022-01_five_columns.parquet", pa.table(five))
    put(folder, "yellow/no_month.csv", csv_text([trip("2002-10-23 10:00:00")]))


def put_refunds(folder: Path) -> None:
    """Refunds, flex fares, a trip entered twice, absurd distances and lengths (B083 to B087)."""
    minus: Cells = {"fare_amount": "-11.5", "tip_amount": "-2.00", "total_amount": "-16.30"}
    rows = [
        trip("2023-12-10 10:00:00"),
        trip("2023-12-10 10:00:00", payment_type=3, **minus),
        trip("2023-12-10 11:00:00", payment_type=2, tip_amount="0"),
        trip("2023-12-10 11:00:00", payment_type=2, tip_amount="0", fare_amount="12.5"),
        trip("2023-12-10 12:00:00", trip_distance="118988.71"),
        trip("2023-12-10 13:00:00", minutes=121),
        trip("2023-12-10 14:00:00", minutes=23 * 60),
        trip("2023-12-10 15:00:00", minutes=0, trip_distance="0"),
    ]
    put(folder, "green/refunds_2023-12.csv", csv_text(rows))
    flex: Cells = {"fare_amount": "-4.5", "total_amount": "21.30"}
    rows = [
        trip("2023-11-10 10:00:00", **flex),
        trip("2023-11-10 10:00:00"),
        trip("2023-11-10 11:00:00", payment_type=3, **minus),
        trip("2023-11-10 11:00:00"),
    ]
    put(folder, "green/flex_2023-11.csv", csv_text(rows))


def put_places(folder: Path) -> None:
    """Zones that are none (B085), and services told by colour, by path, by nothing."""
    zones = [trip(f"2023-05-01 10:0{n}:00", PULocationID=z) for n, z in enumerate(ZONES)]
    put(folder, "green/zones_2023-05.csv", csv_text(zones))
    mixed = [trip("2019-07-01 10:00:00", color=c) for c in ("yellow", "green")]
    put(folder, "yellow/colors_2019-07.csv", csv_text(mixed))
    put(folder, "somewhere/trips_2019-08.csv", csv_text(trips("2019-08-01 10:00:00", 1)))


ZONES = (264, 265, 56, 999)


def put_passengers(folder: Path) -> None:
    """Zero passengers come up between two months of a hundred trips (B088)."""
    january = trips("2019-01-10 10:00:00", 100)
    february = [*trips("2019-02-10 10:00:00", 84), *trips("2019-02-13", 16, passenger_count=0)]
    put(folder, JANUARY, csv_text(january))
    put(folder, FEBRUARY, csv_text(february))


JANUARY, FEBRUARY = (f"yellow/yellow_tripdata_2019-{month}.csv" for month in ("01", "02"))


def put_cases(folder: Path) -> None:
    """Every made file."""
    put_retyped_sample(folder)
    put_fee_columns(folder)
    put_first_as_csv(folder)
    put_time_units(folder)
    put_bad_lines(folder)
    put_mixed_line_ends(folder)
    put_clock_changes(folder)
    put_strays(folder)
    put_refunds(folder)
    put_places(folder)
    put_passengers(folder)
