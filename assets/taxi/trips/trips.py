"""Every trip record, named, placed and marked: the table to look into when a number surprises."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DateType, StringType

from assets.taxi.trips import new_york
from assets.taxi.trips.columns import COUNT, SERVICE, TEXT, Described, schema
from assets.taxi.trips.contract import AMOUNTS, CODES, WHEN_AND_WHERE
from assets.taxi.trips.expected import KNOWN_SERVICE
from assets.taxi.trips.ingest import TLC, TRIP_RECORDS
from assets.taxi.trips.payment import payment_name
from assets.taxi.trips.twins import marked
from assets.taxi.trips.zones import zone
from rivermark import Field, expect


def _described(*fields: Field) -> tuple[Described, ...]:
    return tuple((f.name, f.type, f.description) for f in fields)


MARKS: Final[tuple[Described, ...]] = (
    ("is_repeat", BooleanType(), "Equal to an earlier record: in no published count or sum."),
    ("is_surplus", BooleanType(), "A further record of a trip counted already."),
    (
        "is_refund",
        BooleanType(),
        "Negative fare and total beside a positive fare of the same trip.",
    ),
    ("is_refunded", BooleanType(), "Positive fare beside a refund of the same trip."),
)
PLACES: Final[tuple[Described, ...]] = (
    ("pickup_borough", TEXT, "Borough of the pickup zone; empty for a number not in TLC's table."),
    ("pickup_zone", TEXT, "Name of the pickup zone; 'NA' and 'NV' are TLC's words."),
    ("dropoff_borough", TEXT, "Borough of the dropoff zone; empty for a number not in the table."),
    ("dropoff_zone", TEXT, "Name of the dropoff zone; 'NA' and 'NV' are TLC's words."),
)

TRIP: Final = schema(
    *_described(*WHEN_AND_WHERE[:2]),
    ("local_day", DateType(), "Date of the pickup in New York."),
    ("local_hour", TEXT, "Hour of the pickup in New York with its offset."),
    SERVICE,
    *_described(*WHEN_AND_WHERE[4:]),
    ("seconds", COUNT, "From pickup to dropoff, in seconds."),
    *PLACES,
    *_described(*(f for f in CODES if f.name != "color")),
    ("payment", TEXT, "The payment type's name."),
    *_described(*AMOUNTS),
    *MARKS,
    ("flags", ArrayType(StringType()), "The rules that the record breaks."),
    *_described(*WHEN_AND_WHERE[2:4]),
    ("file", TEXT, "File that held the record."),
    ("row", COUNT, "Its line or row in the file, from 1."),
)


def name_and_place(marked_records: DataFrame) -> DataFrame:
    """Give marked records their zones' names, their local time and the names of their codes."""
    pickup, dropoff = zone(F.col("pickup_zone_id")), zone(F.col("dropoff_zone_id"))
    added: dict[str, Column] = {
        "local_day": new_york.local_day(F.col("pickup_at")),
        "local_hour": new_york.local_hour(F.col("pickup_at")),
        "seconds": F.unix_timestamp("dropoff_at") - F.unix_timestamp("pickup_at"),
        "pickup_borough": pickup["borough"],
        "pickup_zone": pickup["zone"],
        "dropoff_borough": dropoff["borough"],
        "dropoff_zone": dropoff["zone"],
        "payment": payment_name(F.col("payment_type")),
        "file": F.col("_file"),
        "row": F.col("_row"),
    }
    return marked_records.withColumns(added).select(*TRIP.names)


def trips(records: DataFrame) -> DataFrame:
    """Trip records with their twins marked, then named and placed."""
    return records.transform(marked).transform(name_and_place)


TRIPS: Final = TLC.stream(
    reads=TRIP_RECORDS,
    build=trips,
    writes=TLC.table(
        "taxi/trips",
        TRIP,
        description=(
            "One row a TLC trip record, yellow and green, with zone names, local time, flags and "
            "marks for repeats and refunds. Nothing is left out: filter by is_surplus for one row "
            "a trip, by is_repeat for sums of money, by flags for averages."
        ),
        keys=("file", "row"),
        event_time="pickup_at",
    ),
    description="Each trip record with its zones, its local time, and its twins marked.",
    kind="refresh",
    expect=[
        expect.unique(("file", "row")),
        expect.not_null("local_day"),
        expect.no_rows_where("is_repeat AND NOT is_surplus", name="a repeat is surplus"),
        expect.no_rows_where("is_refund AND NOT is_surplus", name="a refund is no trip"),
        expect.no_rows_where("is_refund AND fare >= 0", name="a refund's fare is negative"),
        expect.no_rows_where("is_refund AND total >= 0", name="a refund's total is negative"),
        KNOWN_SERVICE,
    ],
    may_be_empty=False,
    volume="events",
)
