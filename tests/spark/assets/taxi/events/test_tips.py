"""Tips per driver and hour, and the best driver of each hour."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from assets.taxi.fares import MONEY
from assets.taxi.ingest import LATENESS
from assets.taxi.tips import best_of_each_hour, tips_per_driver
from rivermark import columns
from simulator.taxi.fares import fares
from tests.spark.helpers.micro_batches import Feed, Rows, as_table, plain

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
FARE = columns(f"driver_id long, event_time timestamp, tip {MONEY}")
TRAINING_CASE = [(1, 0, 1), (1, 15, 5), (1, 90, 10), (2, 90, 20)]
TRAINING_CASE += [(3, 70, 0), (4, 70, 0), (4, 80, 1), (5, 100, 10)]


def fare(driver: int, minute: int, tip: int) -> dict[str, int | datetime | Decimal]:
    at = NOON + timedelta(minutes=minute)
    return {"driver_id": driver, "event_time": at, "tip": Decimal(f"{tip}.00")}


def at(hours: int) -> datetime:
    return (NOON + hours * HOUR).replace(tzinfo=None)


def test_the_trainings_case_has_its_two_winners(spark: SparkSession) -> None:
    feed = Feed(FARE, "event_time", LATENESS, [[fare(*f) for f in TRAINING_CASE]])
    tips = tips_per_driver(as_table(spark, feed))

    assert plain(best_of_each_hour(tips).collect(), "window_end", "driver_id", "tips") == [
        (at(1), 1, Decimal("6.00")),
        (at(2), 2, Decimal("20.00")),
    ]
    assert plain(tips.where("driver_id = 3").collect(), "tips") == [(Decimal("0.00"),)]


def test_of_equal_tips_the_lowest_driver_id_wins(spark: SparkSession) -> None:
    feed = Feed(FARE, "event_time", LATENESS, [[fare(9, 1, 5), fare(3, 2, 5), fare(7, 3, 5)]])

    [best] = best_of_each_hour(tips_per_driver(as_table(spark, feed))).collect()

    assert (best.driver_id, best.window_start, best.window_end) == (3, at(0), at(1))


def test_the_generated_world_has_the_published_winners(spark: SparkSession) -> None:
    # Hours ending 13:00 to 18:00 hold the rides 1 to 1079; one every 20 seconds from 12:00:20.
    rows: Rows = [
        {"driver_id": f.driver_id, "event_time": f.event_time, "tip": f.tip} for f in fares(1, 1079)
    ]
    table = as_table(spark, Feed(FARE, "event_time", LATENESS, [rows]))

    winners = best_of_each_hour(tips_per_driver(table)).orderBy(F.col("window_end"))

    assert [(r.driver_id, r.tips) for r in winners.collect()] == [
        (2013000089, Decimal("76.00")),
        (2013000197, Decimal("71.00")),
        (2013000118, Decimal("83.00")),
        (2013000119, Decimal("81.00")),
        (2013000195, Decimal("73.00")),
        (2013000072, Decimal("123.00")),
    ]
