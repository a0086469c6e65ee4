"""Cases B032 to B039: columns that come, go and change. Those on TLC files are tested there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import DecimalType, DoubleType, StringType, TimestampType

from rivermark import Field, Ingest, Table
from rivermark.model.errors import StreamFailed
from rivermark.model.field_readers import local_timestamp
from rivermark.runtime.supervision.heartbeat import HeartbeatStore
from rivermark.settings import Settings
from rivermark.testing import wait_until
from tests.spark.helpers.background import Running
from tests.spark.helpers.landing import Landing
from tests.spark.helpers.sensors import FOLDER, READING, TEN, reading, readings, rows, run
from tests.spark.helpers.stateful_streams import distinct
from tests.spark.runtime.supervision.test_run import live

pytestmark = pytest.mark.spark

MONEY = DecimalType(12, 2)


def with_fields(*more: Field, **changes: object) -> Ingest:
    return readings(fields=(*READING.fields, *more), **changes)


def test_b032_a_column_is_added_while_a_reader_runs_and_one_restart_takes_it_up(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    wider = with_fields(Field("tip_note", StringType()))
    before, after = distinct(), replace(distinct(), reads=(wider,), writes=table_of_notes(wider))
    landing.put(f"{FOLDER}/1.json", reading(0, note="1"))
    run(spark, settings, readings(), before)

    thread = Running(live(spark, settings, before))
    wait_until(lambda: bool(spark.streams.active), reason="the reader runs", alive=thread.alive)
    landing.put(f"{FOLDER}/2.json", reading(1, note="2", tip_note="thanks"))
    run(spark, settings, wider)
    with pytest.raises(StreamFailed, match="taken up by the next start"):
        thread.join()
    beat = HeartbeatStore(settings.state).get(before.name)
    assert beat is not None
    assert beat.restartable

    run(spark, settings, wider, after)
    run(spark, settings, wider, after)
    found = rows(spark, settings, after.tables[0], "note", "tip_note")
    assert [tuple(r) for r in found] == [("1", None), ("2", "thanks")]


def table_of_notes(wider: Ingest) -> Table:
    return replace(wider.admitted, name=distinct().tables[0].name)


def test_b033_a_retyped_column_is_refused_with_both_types_and_nothing_is_written(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    double = with_fields(Field("fare_amount", DoubleType()))
    text = with_fields(Field("fare_amount", StringType()))
    landing.put(f"{FOLDER}/1.json", reading(0, fare_amount=12.5))
    run(spark, settings, double)
    landing.put(f"{FOLDER}/2.json", reading(1, fare_amount="12,50"))

    with pytest.raises(StreamFailed, match="fare_amount: double on disk, string declared"):
        run(spark, settings, text)
    beat = HeartbeatStore(settings.state).get(double.name)
    assert beat is not None
    assert (beat.state, beat.restartable) == ("failed", False)

    run(spark, settings, double)
    assert [r["fare_amount"] for r in rows(spark, settings, double.admitted)] == [12.5]
    assert rows(spark, settings, double.quarantine)[0]["reasons"] == ["unreadable_fare_amount"]


@pytest.mark.long
def test_b035_names_are_one_column_in_any_letter_case_and_empty_where_they_lack(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    fees = with_fields(Field("airport_fee", MONEY), Field("cbd_congestion_fee", MONEY))
    head, at = "sensor,at,temperature", "2024-03-01T10:00:00Z"
    files: Sequence[tuple[str, Sequence[str]]] = (
        (f"{head},airport_fee", [f"a,{at},1,1.25"] * 2),
        (f"{head},Airport_fee,cbd_congestion_fee", [f"b,{at},1,1.75,0.75"] * 3),
        (head, [f"c,{at},1"]),
    )
    for number, (header, lines) in enumerate(files):
        landing.put(f"{FOLDER}/{number}.csv", header, *lines)
    landing.put(
        f"{FOLDER}/4.json", '{"Sensor":"d","AT":"' + at + '","temperature":1,"AIRPORT_FEE":2}'
    )
    landing.put_parquet(
        f"{FOLDER}/5.parquet",
        pa.table({"SENSOR": ["e"], "at": [at], "Temperature": [1], "Airport_Fee": [1.5]}),
    )

    run(spark, settings, fees)

    found = rows(spark, settings, fees.admitted, "sensor", "airport_fee", "cbd_congestion_fee")
    assert [tuple(r) for r in found] == [
        *[("a", Decimal("1.25"), None)] * 2,
        *[("b", Decimal("1.75"), Decimal("0.75"))] * 3,
        ("c", None, None),
        ("d", Decimal("2.00"), None),
        ("e", Decimal("1.50"), None),
    ]


@pytest.mark.long
def test_b036_a_column_without_a_value_keeps_its_declared_type(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    fees = with_fields(Field("ehail_fee", MONEY))
    columns = {"sensor": ["a"] * 3, "at": [TEN] * 3, "temperature": [1.0] * 3}
    empty = pa.table(columns | {"ehail_fee": pa.nulls(3)})
    landing.put_parquet(f"{FOLDER}/1.parquet", empty)
    run(spark, settings, fees)
    landing.put_parquet(f"{FOLDER}/2.parquet", pa.table(columns | {"ehail_fee": [None, 1.5, None]}))
    run(spark, settings, fees)

    found = [r["ehail_fee"] for r in rows(spark, settings, fees.admitted, "ehail_fee")]
    assert found == [None] * 5 + [Decimal("1.50")]


@pytest.mark.long
def test_b038_a_local_time_is_one_instant_from_parquet_and_from_csv(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    read = local_timestamp("America/New_York")
    local = readings(
        fields=tuple(
            replace(f, read=read) if isinstance(f.type, TimestampType) else f
            for f in READING.fields
        )
    )
    wall = datetime(2023, 12, 1, 0, 6, 30)  # noqa: DTZ001 - a clock on a wall, as TLC writes it
    plain = pa.array([wall], pa.timestamp("us"))
    parquet = pa.table({"sensor": ["parquet"], "at": plain, "temperature": [1.0]})
    landing.put_parquet(f"{FOLDER}/1.parquet", parquet)
    landing.put(f"{FOLDER}/2.csv", "sensor,at,temperature", "csv,2023-12-01 00:06:30,1.0")

    run(spark, settings, local)

    found = rows(spark, settings, local.admitted, "sensor", "at")
    instant = datetime(2023, 12, 1, 5, 6, 30)  # noqa: DTZ001 - as Spark gives it, in UTC
    assert [tuple(r) for r in found] == [("csv", instant), ("parquet", instant)]


@pytest.mark.long
def test_b039_nanosecond_times_are_read_like_any_others(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    for number, unit in enumerate(("us", "ns", "us")):
        times = [TEN.replace(tzinfo=None) + timedelta(seconds=10 * number + n) for n in range(10)]
        columns = {
            "sensor": ["s"] * 10,
            "at": pa.array(times, pa.timestamp(unit)),
            "temperature": [20.0] * 10,
        }
        landing.put_parquet(f"{FOLDER}/{number}.parquet", pa.table(columns))

    door = run(spark, settings, readings())["test/readings"]

    assert (door.admitted, door.quarantined) == (30, 0)
    found = [r["at"].replace(tzinfo=UTC) for r in rows(spark, settings, readings().admitted, "at")]
    assert found == [TEN + timedelta(seconds=n) for n in range(30)]
