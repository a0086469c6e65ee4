"""Every published table is what plain Python makes of the same files, to the cent."""

from __future__ import annotations

from datetime import timedelta

import pytest
from pyspark.sql import SparkSession

from assets.taxi.trips.local_days import LOCAL_DAYS
from assets.taxi.trips.streams import STREAMS
from rivermark.model.stream import Stream
from tests.oracles import trips as oracle
from tests.oracles.trip_records import NEW_YORK, Record
from tests.spark.assets.taxi.trips.published import Published, agree, keyed
from tests.spark.helpers.recomputing import recompute_days

pytestmark = pytest.mark.long


def test_each_record_is_there_once_with_its_marks_and_flags(
    published: Published, records: list[Record]
) -> None:
    expected = {
        (r.file, r.row): {
            "pickup_at": r.pickup,
            "dropoff_at": r.dropoff,
            "local_day": r.day,
            "service": r.service,
            "distance_miles": r.miles,
            "fare": r.money[0],
            "total": r.money[-1],
            "is_repeat": r.repeat,
            "is_surplus": r.surplus,
            "is_refund": r.refund,
            "is_refunded": r.refunded,
            "flags": r.flags,
        }
        for r in records
    }
    rows = [{**row, "flags": set(row["flags"])} for row in published.rows("taxi/trips")]

    agree(rows, expected, "file", "row")


def test_zone_hours_agree(published: Published, records: list[Record]) -> None:
    rows = published.rows("taxi/zone_hours")

    agree(rows, oracle.zone_hours(records), "service", "pickup_zone_id", "window_end")


def test_tip_hours_agree(published: Published, records: list[Record]) -> None:
    agree(published.rows("taxi/tip_hours"), oracle.tip_hours(records), "service", "window_end")


def test_payment_days_agree(published: Published, records: list[Record]) -> None:
    rows = published.rows("taxi/payment_days")

    agree(rows, oracle.payment_days(records), "service", "payment_type", "local_day")


def test_local_days_agree(published: Published, records: list[Record]) -> None:
    agree(published.rows("taxi/local_days"), oracle.local_days(records), "service", "local_day")


def test_trip_quality_counts_what_each_rule_found(
    published: Published, records: list[Record]
) -> None:
    found: dict[tuple[str, str], int] = {}
    for row in published.rows("taxi/trip_quality"):
        assert row["records"] == row["empty"] + row["broken"] + row["good"]
        key = (row["file"], row["rule"])
        found[key] = found.get(key, 0) + row["broken"]

    assert {key: n for key, n in found.items() if n} == dict(oracle.broken_rules(records))


def test_windows_and_days_are_kept_on_both_clocks(published: Published) -> None:
    for row in published.rows("taxi/zone_hours"):
        assert row["window_end"] - row["window_start"] == timedelta(hours=1)
        local = row["window_start"].astimezone(NEW_YORK)
        assert row["local_day"] == local.date()
        assert row["local_hour"] == local.isoformat(sep=" ")[:13] + ":00" + local.isoformat()[-6:]
    for row in published.rows("taxi/local_days"):
        assert row["day_start"] == oracle.midnight(row["local_day"])
        assert row["day_end"] == oracle.midnight(row["local_day"] + timedelta(days=1))


def test_what_is_built_has_the_declared_schema(spark: SparkSession) -> None:
    streams = [s for s in STREAMS if isinstance(s, Stream)]
    assert len(streams) == 6
    for stream in streams:
        source, table = STREAMS[0].tables[0], stream.tables[0]
        built = stream.build(spark.createDataFrame([], source.schema))
        assert built.schema.simpleString() == table.schema.simpleString()


def test_recomputed_days_are_as_they_were(published: Published) -> None:
    before = keyed(published.rows("taxi/local_days"), "service", "local_day")
    days = sorted({day for _, day in before if day.year == 2019})

    recompute_days(published.spark, published.settings, LOCAL_DAYS, days[0], days[-1])

    assert keyed(published.rows("taxi/local_days"), "service", "local_day") == before
