"""Builds that one value would stop, or that give other rows each time, by `rivermark check`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from rivermark import Daily, Output, Stream, Table
from rivermark.operators import TumblingWindow, first_of_each, per_window
from rivermark.runtime.preflight import EmptyInputs, faults_of
from rivermark.sinks import DeltaUpsert, PostgresUpsert
from tests.oracles.cafe import contract, orders, sales

QUARTER = timedelta(minutes=15)
STORES = Table(name="cafe/stores", schema="store long, code string, owner string", description="s")
OUT = Table(
    name="cafe/out",
    schema="order_id long, at timestamp, region string, value string",
    description="Orders.",
    event_time="at",
    keys=("order_id",),
    days=Daily("at", date(2026, 11, 1)),
)


def made(value: Column | str) -> Callable[[DataFrame], DataFrame]:
    """A build that computes one value."""
    computed = F.expr(value) if isinstance(value, str) else value
    return lambda rows: rows.withColumn("value", computed.cast("string"))


def summed(total: Callable[[], Column]) -> Callable[[DataFrame], DataFrame]:
    return lambda rows: per_window(rows, TumblingWindow(QUARTER), "at", "region", sales=total())


@pytest.fixture
def faults(spark: SparkSession, tmp_path: Path) -> Callable[[Stream], str]:
    inputs = EmptyInputs(spark, tmp_path)
    return lambda stream: " ".join(str(fault) for fault in faults_of(stream, inputs))


def plain(build: Callable[..., DataFrame], **more: object) -> Stream:
    declared = {"writes": OUT, "build": build, "volume": "events"} | more
    return sales(**declared)


@pytest.mark.parametrize(
    ("total", "is_named"),
    [
        (lambda: F.sum("total").cast("decimal(12,2)"), True),
        (lambda: F.coalesce(F.sum("total"), F.lit(0)).cast("decimal(12,2)"), True),
        (lambda: F.sum("order_id").cast("int"), True),
        (lambda: F.sum("total").cast("decimal(22,2)"), False),
        (lambda: (F.sum("total") / F.count("total")).cast("decimal(12,2)"), False),
    ],
)
def test_m018_a_sum_without_room_is_named(
    faults: Callable[[Stream], str], total: Callable[[], Column], is_named: bool
) -> None:
    kind = "decimal(12,2)" if "decimal" in str(total()) else "int"
    table = replace(
        sales().tables[0],
        schema=f"region string, window_start timestamp, window_end timestamp, sales {kind}",
    )
    said = faults(sales(build=summed(total), writes=table))
    assert ("which has no room for it" in said) is is_named


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("cast(region AS int)", "the text 'region' is cast to int"),
        ("cast(region AS date)", "the text 'region' is cast to date"),
        ("region > 5", "the text 'region' is cast to"),
        ("total / order_id", "'total' is divided by 'order_id'"),
        ("order_id % (order_id - 1)", "is divided by"),
        ("order_id div order_id", "is divided by"),
        ("split(region, ',')[1]", "an element of 'region'"),
        ("element_at(split(region, ','), 2)", "an element of 'region'"),
        ("to_timestamp(region)", "to_timestamp('region') raises"),
        ("to_date(region, 'yyyy')", "to_date('region') raises"),
        ("unix_timestamp(region)", "write try_to_timestamp"),
        ("cast(order_id AS int)", "'order_id' (bigint) is cast to int"),
    ],
)
def test_m021_m047_what_raises_for_one_value_is_named(
    faults: Callable[[Stream], str], value: str, said: str
) -> None:
    assert said in faults(plain(made(value)))


@pytest.mark.parametrize(
    "value",
    [
        "try_cast(region AS int)",
        "CASE WHEN order_id <> 0 THEN total / order_id END",
        "total / nullif(order_id, 0)",
        "try_divide(total, order_id)",
        "total / 100",
        "get(split(region, ','), 1)",
        "try_element_at(split(region, ','), 2)",
        "try_to_timestamp(region)",
        "to_date(at)",
        "unix_timestamp(at)",
        "cast('2024-03-01' AS date) > at",
        "cast(order_id AS double)",
    ],
)
def test_what_raises_for_no_value_is_not_named(faults: Callable[[Stream], str], value: str) -> None:
    assert faults(plain(made(value))) == ""


def test_m021_a_join_of_a_text_with_a_number_is_named(faults: Callable[[Stream], str]) -> None:
    def joined(rows: DataFrame, stores: DataFrame) -> DataFrame:
        found = rows.join(stores, rows.region == stores.store, "left")
        return found.withColumn("value", F.col("owner"))

    said = faults(plain(joined, static=(STORES,)))
    assert "a join compares the text 'region' with a number" in said

    def by_text(rows: DataFrame, stores: DataFrame) -> DataFrame:
        found = rows.join(stores, rows.region == stores.code, "left")
        return found.withColumn("value", F.col("owner"))

    assert faults(plain(by_text, static=(STORES,))) == ""


@pytest.mark.parametrize(
    "value",
    ["current_timestamp()", "now()", "rand()", "uuid()", "current_date()", "spark_partition_id()"],
)
def test_m019_a_value_of_chance_is_named(faults: Callable[[Stream], str], value: str) -> None:
    said = faults(plain(made(value)))
    assert f"{value} gives another value each time" in said


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (lambda rows: rows.limit(5), "limit() depends on the order"),
        (lambda rows: rows.dropDuplicates(["region"]), "drop_duplicates(region) keeps whichever"),
        (lambda rows: rows.dropDuplicates(["region", "at"]), ""),
        (lambda rows: rows.transform(first_of_each("region", event_time="at", within=QUARTER)), ""),
    ],
)
def test_m019_r19_what_depends_on_the_order_of_rows_is_named(
    faults: Callable[[Stream], str], build: Callable[[DataFrame], DataFrame], said: str
) -> None:
    found = faults(plain(lambda rows: made("region")(build(rows)), margin=QUARTER))
    assert found.count(said) >= 1 if said else not found, found


def test_r08_a_key_of_an_upsert_that_may_be_null_is_named(faults: Callable[[Stream], str]) -> None:
    keyed = Table(
        name="cafe/owned",
        schema="owner string, at timestamp",
        description="o",
        keys=("owner",),
        days=Daily("at", date(2026, 11, 1)),
    )

    def owners(rows: DataFrame, stores: DataFrame) -> DataFrame:
        return rows.join(stores, rows.region == stores.code, "left").select("owner", "at")

    def filled(rows: DataFrame, stores: DataFrame) -> DataFrame:
        return owners(rows, stores).withColumn("owner", F.coalesce("owner", F.lit("nobody")))

    def left_out(rows: DataFrame, stores: DataFrame) -> DataFrame:
        return owners(rows, stores).where("owner IS NOT NULL")

    sinks = (
        DeltaUpsert(version="at"),
        PostgresUpsert(table="owned", version="at"),
    )
    for sink in sinks:
        output = Output(keyed, sinks=(sink,))
        said = faults(plain(owners, static=(STORES,), writes=(output,)))
        assert "'owner' is a key of" in said
        assert "an outer join finds no row for some" in said
        for build in (filled, left_out):
            assert faults(plain(build, static=(STORES,), writes=(output,))) == ""

    by_code = replace(keyed, schema="region string, at timestamp", keys=("region",))
    optional = orders(
        contract=contract(
            fields=tuple(
                replace(f, required=f.name != "region" and f.required) for f in contract().fields
            )
        )
    )
    output = Output(by_code, sinks=(DeltaUpsert(version="at"),))
    said = faults(plain(lambda rows: rows, reads=(optional,), writes=(output,)))
    assert "the field 'region' of its input is not required" in said
