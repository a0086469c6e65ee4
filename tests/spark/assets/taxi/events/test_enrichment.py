"""Rides beside their fares, and what finds no partner."""

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from assets.taxi.cleansing import CLEAN_FARES, CLEAN_RIDES
from assets.taxi.enrichment import WAITING, join_rides_to_fares
from assets.taxi.ingest import LATENESS
from rivermark.model.stream import table_of
from tests.spark.assets.taxi.events.ride_rows import MINUTE, NOON, fare, ride
from tests.spark.helpers.micro_batches import Feed, Rows, Streamed, as_table, plain, streamed

BEYOND_ALL_LIMITS = NOON + 3 * (WAITING + LATENESS)
SIDES = ("ride_id", "has_ride", "has_fare")


def rides(*batches: Rows) -> Feed:
    cells = {"start_cell": 1, "end_cell": 2}
    filled = [[{**row, **cells} for row in batch] for batch in batches]
    return Feed(table_of(CLEAN_RIDES).schema, "event_time", LATENESS, filled)


def fares(*batches: Rows) -> Feed:
    return Feed(table_of(CLEAN_FARES).schema, "event_time", LATENESS, batches)


def join(spark: SparkSession, folder: Path, rides: Feed, fares: Feed) -> Streamed:
    return streamed(spark, folder, join_rides_to_fares, rides, fares)


def sides(rows: list[Row]) -> list[tuple[object, ...]]:
    return plain(rows, *SIDES)


def test_either_side_may_come_first_and_leaves_no_state(
    spark: SparkSession, tmp_path: Path
) -> None:
    # Batch 2 brings the partners, batch 3 ends of other rides that move time on.
    late_end = [ride(9, BEYOND_ALL_LIMITS, is_start=False)]
    result = join(
        spark,
        tmp_path,
        rides([ride(1)], [ride(2)], late_end),
        fares([fare(2)], [fare(1)], [fare(8, BEYOND_ALL_LIMITS)]),
    )

    assert sides(result.rows) == [(1, True, True), (2, True, True)]
    assert result.state_rows == 1  # The fare of ride 8, which waits for its ride.
    assert result.dropped_as_late == 0


def test_what_finds_no_partner_is_written_alone_and_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    ride_feed = rides(
        [ride(1), ride(2), ride(2, NOON + MINUTE, is_start=False)],
        [ride(9, BEYOND_ALL_LIMITS, is_start=False)],
    )
    fare_feed = fares([fare(2), fare(3)], [fare(8, BEYOND_ALL_LIMITS)])
    result = join(spark, tmp_path, ride_feed, fare_feed)
    table = join_rides_to_fares(as_table(spark, ride_feed), as_table(spark, fare_feed)).collect()

    final = [(1, True, False), (2, True, True), (3, False, True)]
    assert sides(result.rows) == final
    # On a table nothing waits any more.
    assert sides(table) == [*final, (8, False, True)]


@pytest.mark.long
def test_state_holds_only_the_last_minutes_of_many_days(
    spark: SparkSession, tmp_path: Path
) -> None:
    spacing = timedelta(days=10) / 2_000
    times: list[datetime] = [NOON + i * spacing for i in range(2_000)]
    ride_rows = [ride(i, t) for i, t in enumerate(times)]
    fare_rows = [fare(i, t) for i, t in enumerate(times)]
    cut = range(0, 2_000, 500)
    result = join(
        spark,
        tmp_path,
        rides(*[ride_rows[i : i + 500] for i in cut]),
        fares(*[fare_rows[i : i + 500] for i in cut]),
    )

    assert len(result.rows) == 2_000
    # A ride each 7.2 minutes; both sides remember WAITING and the lateness.
    assert result.state_rows <= 2 * (1 + (WAITING + LATENESS) // spacing)
