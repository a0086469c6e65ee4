"""Cleansed rides: inside the city, each event once."""

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from assets.taxi.cleansing import cleanse_fares, cleanse_rides
from simulator.taxi.rides import rides
from simulator.taxi.wire import to_line
from tests.spark.assets.taxi.events.ride_rows import (
    fare,
    fares_feed,
    ride,
    rides_feed,
)
from tests.spark.helpers.micro_batches import as_table, plain

LAST_RIDE = 20_000


@pytest.fixture(scope="module")
def cleansed_world(spark: SparkSession) -> DataFrame:
    """Every START of rides 1 to 20,000, cleansed; START and END of a ride share their places."""
    lines = [(to_line(r.start),) for r in rides(1, LAST_RIDE)]
    schema = rides_feed().schema
    table = (
        spark.createDataFrame(lines, "line string")
        .select(F.from_json("line", schema).alias("row"))
        .select("row.*")
        .withColumns({"_ingest_batch": F.lit(0), "_file": F.lit("a"), "_row": F.lit(1)})
    )
    return cleanse_rides(table).cache()


def test_of_twenty_thousand_rides_389_lie_outside_the_city(cleansed_world: DataFrame) -> None:
    outside = cleansed_world.where("outside is not null").orderBy("ride_id").collect()

    assert len(outside) == 389
    assert [r.ride_id for r in outside[:5]] == [1497, 1499, 1539, 1541, 1558]


def test_what_lies_outside_says_which_end(spark: SparkSession) -> None:
    nowhere = (0.0, 0.0)
    rows = [
        ride(1, start=nowhere),
        ride(2, end=nowhere),
        ride(3, start=nowhere, end=nowhere),
        ride(4),
    ]

    cleansed = cleanse_rides(as_table(spark, rides_feed(rows)))

    assert plain(cleansed.collect(), "ride_id", "outside") == [
        (1, "start"),
        (2, "end"),
        (3, "start and end"),
        (4, None),
    ]


def test_a_fare_that_comes_twice_counts_once(spark: SparkSession) -> None:
    feed = fares_feed([fare(1), fare(2)], [fare(1)])

    assert plain(cleanse_fares(as_table(spark, feed)).collect(), "ride_id") == [(1,), (2,)]
