"""Which bucket a key falls into: equal keys into one, on whatever input and by whatever type."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from pyspark.sql.types import (
    DecimalType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.model.errors import CheckpointIncompatible
from rivermark.process import Context, Input, KeyedProcess, ValueState
from rivermark.process.spark import ProcessBuild, run_process
from rivermark.process.spark.buckets import bucket_of
from rivermark.process.spark.reading import InputReader
from rivermark.runtime.checkpoint.process_schema import admit, read_record, write_record

BUCKETS = 1 << 14


class Ride(msgspec.Struct, frozen=True):
    ride: str
    at: int


class Fare(msgspec.Struct, frozen=True):
    ticket: str
    at: int


def ride_of(fare: Fare) -> str:
    return fare.ticket.removeprefix("t-")


class Paid(KeyedProcess[Any, Ride]):
    rides = Input(Ride, key="ride", time="at")
    fares = Input(Fare, key=ride_of, time="at")
    seen: ValueState[int]

    def on_rides(self, event: Ride, ctx: Context[Ride]) -> None: ...

    def on_fares(self, event: Fare, ctx: Context[Ride]) -> None: ...


class PaidByFields(Paid):
    fares = Input(Fare, key="ticket", time="at")


class Priced(msgspec.Struct, frozen=True):
    price: Decimal
    at: int


class ByPrice(KeyedProcess[Priced, Priced]):
    key = "price"
    time = "at"

    def on_event(self, event: Priced, ctx: Context[Priced]) -> None: ...


def columns(**types: Any) -> StructType:
    fields = [StructField(name, kind) for name, kind in types.items()]
    return StructType([*fields, StructField("at", TimestampType())])


def readers(build: ProcessBuild) -> list[InputReader]:
    rides = build._reader("rides", columns(ride=StringType()))
    return [rides, build._reader("fares", columns(ticket=StringType()))]


def test_where_one_input_has_a_key_that_only_python_knows_python_places_all() -> None:
    build = run_process(Paid, inputs=("rides", "fares"))
    assert [each.bucketed for each in readers(build)] == [True, False]
    assert [each.bucketed for each in build._placed(readers(build))] == [False, False]

    fields = run_process(PaidByFields, inputs=("rides", "fares"))
    assert [each.bucketed for each in fields._placed(readers(fields))] == [True, True]


def test_keys_stay_in_the_buckets_of_the_first_start() -> None:
    fields = replace(run_process(PaidByFields, inputs=("rides", "fares")), placing="python")
    assert not any(each.bucketed for each in fields._placed(readers(fields)))

    build = replace(run_process(Paid, inputs=("rides", "fares")), placing="spark")
    with pytest.raises(CheckpointIncompatible, match=r"input 'fares' is computed in Python.*reset"):
        build._placed(readers(build))


def test_the_record_of_a_checkpoint_keeps_who_placed_its_keys(tmp_path: Any) -> None:
    checkpoint = str(tmp_path)
    record = admit("test/paid", checkpoint, Paid.declaration, 32)
    assert record.placing is None

    write_record(checkpoint, replace(record, placing="python"))
    again = admit("test/paid", checkpoint, Paid.declaration, 64)
    assert (again.placing, again.buckets) == ("python", 32)
    assert read_record(checkpoint, "test/paid") == again


def test_equal_keys_have_one_bucket() -> None:
    noon = datetime(2024, 3, 1, 12, tzinfo=UTC)
    eastern = noon.astimezone(timezone(timedelta(hours=-5)))
    for one, other in (
        (Decimal("1.5"), Decimal("1.500")),
        (Decimal(100), Decimal("1E+2")),
        (Decimal(0), Decimal("-0.00")),
        (noon, eastern),
        (("a", Decimal("1.5")), ("a", Decimal("1.50"))),
        (Priced(Decimal("2.0"), 1), Priced(Decimal(2), 1)),
    ):
        assert one == other
        assert bucket_of(one, BUCKETS) == bucket_of(other, BUCKETS)


def test_decimals_are_placed_by_python_since_spark_hashes_their_digits() -> None:
    build = run_process(ByPrice)

    assert not build._reader("events", columns(price=DecimalType(9, 2))).bucketed


def test_the_hash_of_a_key_is_the_same_for_ever() -> None:
    """Stored state lies by it."""
    known = {"a": 14204, 7: 7294, ("a", 1): 521}
    assert {key: bucket_of(key, BUCKETS) for key in known} == known
