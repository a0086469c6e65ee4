"""The half-hour counts of the Numenta Anomaly Benchmark, through the night of the clock change."""

from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import SparkSession

from assets.taxi.trips.passenger_counts import PASSENGER_COUNTS
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from rivermark.testing.landing.writer import land

# As in the benchmark's file; the buckets of 01:00 and 01:30 hold two real hours each.
NIGHT = [
    "timestamp,value",
    "2014-11-02 00:30:00,23109",
    "2014-11-02 01:00:00,39197",
    "2014-11-02 01:30:00,35212",
    "2014-11-02 02:00:00,13259",
    "2014-11-02 02:30:00,many",
]


def test_the_doubled_hour_is_flagged_and_nothing_is_lost(
    spark: SparkSession, settings: Settings
) -> None:
    land(Path(settings.landing_root) / "taxi/passengers/counts.csv", NIGHT)

    done = run_bounded(
        spark, settings, Topology([PASSENGER_COUNTS]), [PASSENGER_COUNTS], run_id="night"
    )["taxi/passenger_counts"]

    rows = spark.read.format("delta").load(settings.lake().path("taxi/passenger_counts"))
    found = {utc(r.bucket_start): (r.passengers, list(r.flags)) for r in rows.collect()}
    assert found == {
        datetime(2014, 11, 2, 4, 30, tzinfo=UTC): (23109, []),
        datetime(2014, 11, 2, 5, 0, tzinfo=UTC): (39197, ["two_hours_in_one"]),
        datetime(2014, 11, 2, 5, 30, tzinfo=UTC): (35212, ["two_hours_in_one"]),
        datetime(2014, 11, 2, 7, 0, tzinfo=UTC): (13259, []),
    }
    assert (done.rows_in, done.admitted, done.quarantined) == (5, 4, 1)


def utc(moment: datetime) -> datetime:
    """Spark's session is in UTC, but its Python times carry no zone."""
    return moment.replace(tzinfo=UTC)
