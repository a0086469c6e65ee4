"""Which columns a stream's columns come from, as the plans of all kinds of builds say."""

from datetime import timedelta

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from assets.taxi.ingest import TRIP_EVENTS
from assets.taxi.tips import DRIVER_TIPS, HOURLY_WINNERS
from assets.taxi.zone_activity import ZONE_ACTIVITY
from rivermark import Stream, Table
from rivermark.runtime.preflight.column_lineage import column_lineage

ORDERS = Table(
    name="shop/orders",
    schema="id long, at timestamp, price double, tax double, items array<string>",
    description="Orders.",
    event_time="at",
)
STORES = Table(name="shop/stores", schema="id long, town string", description="Stores.")


def hourly(orders: DataFrame, stores: DataFrame) -> DataFrame:
    of_stores = orders.join(stores.withColumnRenamed("id", "store"), F.col("id") == F.col("store"))
    hour = F.window("at", "1 hour").alias("hour")
    sums = of_stores.groupBy(hour, "town").agg(F.sum(F.col("price") + F.col("tax")).alias("paid"))
    return sums.select(
        F.col("hour.start").alias("window_start"), "town", "paid", F.lit(1).alias("n")
    )


def united(orders: DataFrame, stores: DataFrame) -> DataFrame:
    return orders.select("id", F.col("price").alias("amount")).unionByName(
        orders.select("id", F.col("tax").alias("amount"))
    )


def with_itself(orders: DataFrame, stores: DataFrame) -> DataFrame:
    first, second = orders.alias("a"), orders.alias("b")
    joined = first.join(second, F.col("a.id") == F.col("b.id"), "left_outer")
    return joined.select(F.col("a.price").alias("before"), F.col("b.tax").alias("after"))


def exploded(orders: DataFrame, stores: DataFrame) -> DataFrame:
    return orders.select("id", F.explode("items").alias("item"))


def in_python(orders: DataFrame, stores: DataFrame) -> DataFrame:
    return orders.select("id").mapInPandas(lambda frames: frames, "id long")


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (
            hourly,
            {
                "window_start": [("shop/orders", "at")],
                "town": [("shop/stores", "town")],
                "paid": [("shop/orders", "price"), ("shop/orders", "tax")],
            },
        ),
        (
            united,
            {
                "id": [("shop/orders", "id")],
                "amount": [("shop/orders", "price"), ("shop/orders", "tax")],
            },
        ),
        (with_itself, {"before": [("shop/orders", "price")], "after": [("shop/orders", "tax")]}),
        (exploded, {"id": [("shop/orders", "id")], "item": [("shop/orders", "items")]}),
        (in_python, {}),
    ],
)
def test_columns_come_from_those_that_the_plan_names(
    spark: SparkSession, build: object, expected: dict[str, list[tuple[str, str]]]
) -> None:
    stream = Stream(
        reads=(ORDERS,),
        static=(STORES,),
        build=build,  # type: ignore[arg-type]
        writes=Table(name="shop/made", schema="id long", description="Made."),
        group="shop",
        lateness=timedelta(0),
    )

    assert column_lineage(spark, stream) == expected


def test_the_streams_of_the_deployment_have_theirs(spark: SparkSession) -> None:
    winners = column_lineage(spark, HOURLY_WINNERS)
    activity = column_lineage(spark, ZONE_ACTIVITY)

    assert winners["driver_id"] == [(DRIVER_TIPS.name, "driver_id"), (DRIVER_TIPS.name, "tips")]
    assert activity["zone"] == [
        (TRIP_EVENTS.name, name) for name in ("dropoff_zone", "is_start", "pickup_zone")
    ]
    assert activity["starts"] == [(TRIP_EVENTS.name, "is_start")]
    assert set(activity) == set(ZONE_ACTIVITY.tables[0].schema.names)
