"""TLC trip files read in plain Python, and what is to be said of each record by itself."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow.parquet as pq

NEW_YORK = ZoneInfo("America/New_York")
HOUR = timedelta(hours=1)
CENT = Decimal("0.01")
MONEY = (
    "fare_amount", "extra", "mta_tax", "tip_amount", "tolls_amount", "ehail_fee",
    "improvement_surcharge", "congestion_surcharge", "airport_fee", "cbd_congestion_fee",
    "total_amount",
)  # fmt: skip
FARE, TIP, TOTAL = 0, 3, 10
PICKUP = ("tpep_pickup_datetime", "lpep_pickup_datetime", "pickup_datetime")
DROPOFF = ("tpep_dropoff_datetime", "lpep_dropoff_datetime", "dropoff_datetime")


@dataclass
class Record:
    """One row of a trip file, with what is to be said of it."""

    file: str
    row: int
    service: str | None
    pickup: datetime
    dropoff: datetime
    walls: tuple[datetime, datetime]
    vendor: int | None
    zones: tuple[int | None, int | None]
    codes: tuple[int | str | None, ...]
    passengers: int | None
    payment: int | None
    miles: Decimal | None
    money: tuple[Decimal | None, ...]
    repeat: bool = False
    surplus: bool = False
    refund: bool = False
    refunded: bool = False
    flags: set[str] = field(default_factory=set)

    @property
    def trip(self) -> tuple[object, ...]:
        return (self.service, self.pickup, self.dropoff, self.vendor, self.zones)

    @property
    def said(self) -> tuple[object, ...]:
        values = (self.codes, self.passengers, self.payment, self.miles, self.money)
        return (*self.trip, values)

    @property
    def day(self) -> date:
        return self.pickup.astimezone(NEW_YORK).date()


def read_file(path: Path, name: str) -> Iterator[Record]:
    """The records of one Parquet or CSV file; lines that cannot be one are left out."""
    # A CSV's first row stands on its second line.
    for number, cells in enumerate(rows_of(path), start=2 if path.suffix == ".csv" else 1):
        if cells is not None and (record := record_of(name, number, cells)) is not None:
            yield record


def rows_of(path: Path) -> Iterator[Mapping[str, Any] | None]:
    """Rows by column name in lower case; None for a line of more or fewer values than the head."""
    if path.suffix == ".parquet":
        table = pq.read_table(path, coerce_int96_timestamp_unit="us")
        names = [n.lower() for n in table.column_names]
        columns = [
            [None if v is None else getattr(v, "to_pydatetime", lambda v=v: v)() for v in c]
            for c in (column.to_pylist() for column in table.columns)
        ]
        yield from (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))
        return
    head, *lines = list(csv.reader(path.read_text("utf-8").splitlines()))
    names = [n.lower() for n in head]
    for line in lines:
        yield dict(zip(names, line, strict=True)) if len(line) == len(names) else None


def record_of(name: str, number: int, cells: Mapping[str, Any]) -> Record | None:
    """A record from its cells, or None where a cell cannot be what it should."""

    def given(*names: str) -> Any:
        found = (cells.get(n) for n in names)
        return next((v for v in found if v is not None and str(v).strip() != ""), None)

    try:
        instants = [instant(given(*names)) for names in (PICKUP, DROPOFF)]
        color = given("color")
        word = re.findall(r"(?<![a-z])(yellow|green)(?![a-z])", name.lower())
        miles = given("trip_distance")
        return Record(
            file=name,
            row=number,
            service=color or (word[-1] if word else None),
            pickup=instants[0][0],
            dropoff=instants[1][0],
            walls=(instants[0][1], instants[1][1]),
            vendor=whole(given("vendorid", "vendor_id")),
            zones=(
                whole(given("pulocationid", "pickup_location_id")),
                whole(given("dolocationid", "dropoff_location_id")),
            ),
            codes=(
                whole(given("ratecodeid", "rate_code_id")),
                whole(given("trip_type")),
                given("store_and_fwd_flag"),
            ),
            passengers=whole(given("passenger_count")),
            payment=whole(given("payment_type")),
            miles=None if miles is None else cents(miles),
            money=tuple(None if (v := given(n)) is None else cents(v) for n in MONEY),
        )
    except (ValueError, ArithmeticError, AttributeError):
        return None


def instant(value: str | datetime) -> tuple[datetime, datetime]:
    """A time of a file as an instant in UTC, and as the wall clock that was written."""
    wall = datetime.fromisoformat(value) if isinstance(value, str) else value
    if wall.tzinfo is not None:
        return wall.astimezone(UTC), wall
    return wall.replace(tzinfo=NEW_YORK, fold=0).astimezone(UTC), wall


def cents(value: object) -> Decimal:
    return Decimal(str(value)).quantize(CENT, ROUND_HALF_UP)


def whole(value: object) -> int | None:
    if value is None:
        return None
    exact = Decimal(str(value))
    if exact != int(exact):
        raise ValueError(f"{value!r} is not whole")
    return int(exact)


def months_of(name: str) -> list[date]:
    """The months that a file's name tells."""
    found = re.findall(r"(?<!\d)(20\d\d)-(0[1-9]|1[0-2])(?!-?\d)", name.rsplit("/", 1)[-1])
    return [date(int(year), int(month), 1) for year, month in found]


def days_beside(record: Record) -> int:
    """How many days a pickup lies outside the month in its file's name; 0 without one month."""
    months = months_of(record.file)
    if len(months) != 1:
        return 0
    first = months[0]
    after = (first + timedelta(days=32)).replace(day=1)
    if record.day < first:
        return (first - record.day).days
    return (record.day - after).days + 1 if record.day >= after else 0


def is_set_aside(record: Record) -> bool:
    """Whether a record cannot be placed in time."""
    ahead = record.pickup > datetime.now(UTC)
    return ahead or days_beside(record) > 7 or record.day.year < 2009


def flags(record: Record) -> set[str]:
    """The names of the rules that a record breaks."""
    hours = (record.dropoff - record.pickup) / HOUR
    miles, riders = record.miles, record.passengers
    fare, total = record.money[FARE], record.money[TOTAL]
    shifts = [turns(wall) for wall in record.walls]
    nowhere = [z is not None and not 1 <= z <= 263 for z in record.zones]
    asked = {
        "beside_file_month": days_beside(record) > 0,
        "ambiguous_local_time": any(s < timedelta(0) for s in shifts),
        "skipped_local_time": any(s > timedelta(0) for s in shifts),
        "dropoff_before_pickup": hours < 0,
        "zero_length": hours == 0,
        "long_trip": hours > 2,
        "meter_left_on": hours >= 23,
        "negative_amount": any(m is not None and m < 0 for m in record.money),
        "refund": total is not None and total < 0,
        "flex_fare": fare is not None and total is not None and fare < 0 <= total,
        "absurd_distance": miles is not None and not 0 <= miles <= 100,
        "zero_distance": miles == 0,
        "zero_passengers": riders == 0,
        "too_many_passengers": riders is not None and not 0 <= riders <= 6,
        "unknown_rate_code": record.codes[0] == 99,
        "unknown_pickup_zone": nowhere[0],
        "unknown_dropoff_zone": nowhere[1],
        "unknown_service": record.service is None,
    }
    return {name for name, broken in asked.items() if broken}


def turns(wall: datetime) -> timedelta:
    """What clocks do around a wall time: below zero it comes twice, above it never comes."""
    if wall.tzinfo is not None:
        return timedelta(0)
    first, second = (wall.replace(tzinfo=NEW_YORK, fold=f).utcoffset() for f in (0, 1))
    assert first is not None
    assert second is not None
    return second - first
