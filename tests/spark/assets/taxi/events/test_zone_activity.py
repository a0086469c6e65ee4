"""Trips that begin and end per zone and quarter of an hour."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from assets.taxi.ingest import TRIP_EVENTS, TRIP_LATENESS
from assets.taxi.zone_activity import count_starts_and_ends
from simulator.landing.json_lines import Value
from tests.spark.helpers.micro_batches import Feed, as_table, plain, streamed

NOON = datetime(2023, 12, 5, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
COLUMNS = ("zone", "window_end", "starts", "ends")


def event(trip: str, at: datetime, *, is_start: bool = True) -> dict[str, Value]:
    return {
        "trip_id": trip,
        "is_start": is_start,
        "event_time": at,
        "pickup_zone": 74,
        "dropoff_zone": 75,
    }


def test_starts_count_where_they_began_and_ends_where_they_ended(
    spark: SparkSession, tmp_path: Path
) -> None:
    start, end = event("a", NOON), event("a", NOON + 10 * MINUTE, is_start=False)
    on_the_border = event("b", NOON + 15 * MINUTE)
    much_later = event("z", NOON + 60 * MINUTE)
    feed = Feed(
        TRIP_EVENTS.admitted.schema,
        "event_time",
        TRIP_LATENESS,
        [[start, end, start], [end, on_the_border], [much_later]],
    )
    stream = streamed(spark, tmp_path, count_starts_and_ends, feed)
    table = count_starts_and_ends(as_table(spark, feed)).collect()
    quarter = [(NOON + n * 15 * MINUTE).replace(tzinfo=None) for n in range(6)]

    closed = [(74, quarter[1], 1, 0), (74, quarter[2], 1, 0), (75, quarter[1], 0, 1)]
    assert plain(stream.rows, *COLUMNS) == closed
    assert stream.dropped_as_late == 0
    # The table is not waiting for anything: the last window is in it too.
    assert plain(table, *COLUMNS) == sorted([*closed, (74, quarter[5], 1, 0)], key=repr)
