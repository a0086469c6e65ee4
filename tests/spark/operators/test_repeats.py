"""Repeats are left out the same way on a stream, however it is cut, and on a table."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import (
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from rivermark.model.errors import DeclarationError
from rivermark.operators.repeats import first_of_each
from rivermark.testing import assert_rows_equal
from tests.spark.helpers.micro_batches import Feed, Rows, as_table, streamed

NOON = datetime(2020, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
EVENT = StructType(
    [
        StructField("ride_id", LongType()),
        StructField("event_time", TimestampType()),
        StructField("_ingest_batch", LongType()),
        StructField("_file", StringType()),
        StructField("_row", LongType()),
    ]
)


def feed(*batches: list[tuple[int, datetime]], lateness: timedelta = MINUTE) -> Feed:
    rows: list[Rows] = [[{"ride_id": i, "event_time": t} for i, t in batch] for batch in batches]
    return Feed(EVENT, "event_time", lateness, rows)


def first_rides(events: DataFrame, within: timedelta = MINUTE) -> DataFrame:
    return events.transform(first_of_each("ride_id", event_time="event_time", within=within))


def test_a_repeat_is_left_out_in_whatever_batch_it_comes(
    spark: SparkSession, tmp_path: Path
) -> None:
    one = [(1, NOON), (2, NOON + 5 * MINUTE), (2, NOON + 5 * MINUTE)]
    # Ride 3 moves the watermark to 12:04: ride 2 may still be repeated, ride 1 no longer.
    other = [(3, NOON + 5 * MINUTE), (2, NOON + 5 * MINUTE), (3, NOON + 4.5 * MINUTE)]
    split = streamed(spark, tmp_path / "split", first_rides, feed(one, other))
    whole = streamed(spark, tmp_path / "whole", first_rides, feed([*one, *other]))
    table = first_rides(as_table(spark, feed(one, other))).collect()

    assert [r.ride_id for r in sorted(split.rows)] == [1, 2, 3]
    assert_rows_equal(split.rows, whole.rows, columns=["ride_id"])
    assert_rows_equal(split.rows, table, columns=["ride_id"])


def test_state_forgets_ids_after_the_horizon(spark: SparkSession, tmp_path: Path) -> None:
    # 2,000 rides over ten simulated days; about nine begin within an hour.
    spacing = timedelta(days=10) / 2_000
    rides = [(i, NOON + i * spacing) for i in range(2_000)]
    batches = [rides[i : i + 400] for i in range(0, 2_000, 400)]
    result = streamed(
        spark, tmp_path, lambda e: first_rides(e, HOUR), feed(*batches, lateness=HOUR)
    )

    assert len(result.rows) == 2_000
    # An hour of memory behind a watermark that lags an hour: 17 rides and the one on the border.
    assert result.state_rows <= 18


def test_a_horizon_of_nothing_is_refused() -> None:
    with pytest.raises(DeclarationError, match="name the keys, and give a time"):
        first_of_each("ride_id", event_time="event_time", within=timedelta(0))
