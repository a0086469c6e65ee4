"""One sensor with a wrong date among many that are right."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

from pyspark.sql import SparkSession

from assets.readings.extremes import MINUTE_EXTREMES
from assets.readings.ingest import SENSOR_READINGS
from assets.readings.streams import READING_STREAMS
from rivermark.model.topology import Topology
from rivermark.runtime.supervision.run import run_bounded
from rivermark.settings import Settings
from simulator.feeds import line_of
from simulator.readings.world import Reading
from tests.spark.helpers.landing import Landing

TEN = datetime(2024, 3, 1, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def line(sensor: int, at: datetime) -> str:
    number = int((at - TEN) / MINUTE)
    return line_of(SENSOR_READINGS.contract)(Reading(sensor, number, at, Decimal("60.0000")))


def test_a_wrong_date_makes_no_honest_reading_late(
    spark: SparkSession, settings: Settings, landing: Landing
) -> None:
    folder = SENSOR_READINGS.source.name
    landing.put(f"{folder}/1.json", *[line(1, TEN + n * MINUTE) for n in range(10)])
    landing.put(f"{folder}/2.json", line(9, TEN + timedelta(days=1) - MINUTE))
    landing.put(f"{folder}/3.json", *[line(1, TEN + n * MINUTE) for n in range(10, 20)])
    landing.put(f"{folder}/4.json", line(1, TEN + 30 * MINUTE))
    topology = Topology(READING_STREAMS)

    summaries = run_bounded(
        spark, settings, topology, [SENSOR_READINGS, MINUTE_EXTREMES], run_id="run"
    )

    lake = settings.lake()
    minutes = spark.read.format("delta").load(lake.path("readings/minute_extremes")).collect()
    aside = spark.read.format("delta").load(lake.path("readings/sensor_readings_quarantine"))
    assert [(row.sensor_id, row.readings) for row in minutes] == [("sensor_1", 1)] * 20
    assert len({row.window_end for row in minutes}) == 20
    assert [row.reasons for row in aside.collect()] == [["event_time_ahead_of_stream"]]
    door = summaries[SENSOR_READINGS.name]
    assert (door.rows_in, door.admitted, door.late, door.quarantined) == (22, 21, 0, 1)
